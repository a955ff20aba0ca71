import type { SessionKind, SessionStatus } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** A session event for other systems. Contains no personal data. */
export type SessionNotice = {
  readonly tenantId: TenantId;
  readonly sessionId: SessionId;
  readonly kind: SessionKind;
  readonly version: number;
  readonly status: SessionStatus;
  readonly at: Date;
};

/** An event for other systems: credentials were revoked with their wallet. Contains no personal data. */
export type RevocationNotice = {
  readonly tenantId: TenantId;
  readonly sessionId: SessionId;
  /** The batch contains the credentials of one request. */
  readonly batchId: string;
  readonly credentialConfigurationId: string;
  readonly at: Date;
};

/** An event for other systems: a trust list needs a decision by an operator. */
export type HeldListNotice = {
  readonly tenantId: TenantId;
  /** Id as in `GET /trust/lists`. */
  readonly listId: string;
  /** Address of the list without the parts that may be secret. */
  readonly list: string;
  readonly reason: string;
  /** Fingerprint of the signer of the received list, if an operator has to decide about the signer. */
  readonly signer?: string;
  /** Unique for each received list. */
  readonly key: string;
  readonly at: Date;
};

/** Publishes events to other systems. */
export abstract class EventPublisher {
  /** False while the broker is unreachable. */
  abstract readonly isReady: boolean;
  /**
   * @returns the number of notices, counted from the first, that are delivered for good; fewer than all when one was rejected.
   * @throws Error when the outcome is unknown.
   */
  abstract publish(notices: readonly SessionNotice[]): Promise<number>;
  /** Publishes one revocation. @returns false when a bound queue rejected it. */
  abstract publishRevocation(notice: RevocationNotice): Promise<boolean>;
  /**
   * @returns false when it was rejected.
   * @throws Error when the outcome is unknown.
   */
  abstract publishHeldList(notice: HeldListNotice): Promise<boolean>;
  /** Calls `listener` each time that the publisher becomes ready. @returns a function that ends the subscription. */
  abstract onReady(listener: () => void): () => void;
}
