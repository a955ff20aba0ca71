import type { SessionKind, SessionStatus } from '../../domain/sessions/session.ts';
import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** What other systems are told of a session. No personal data. */
export type SessionNotice = {
  readonly tenantId: TenantId;
  readonly sessionId: SessionId;
  readonly kind: SessionKind;
  readonly version: number;
  readonly status: SessionStatus;
  readonly at: Date;
};

/** What other systems are told of a trust list that somebody has to look at. */
export type HeldListNotice = {
  readonly tenantId: TenantId;
  /** As `GET /trust/lists` knows it. */
  readonly listId: string;
  /** Its address, without what that may keep secret. */
  readonly list: string;
  readonly reason: string;
  /** Fingerprint of who signed what came, where a person decides about them. */
  readonly signer?: string;
  /** Differs for each thing that came. */
  readonly key: string;
  readonly at: Date;
};

/** Hands events to other systems. */
export abstract class EventPublisher {
  /** Whether it can be tried at present. */
  abstract readonly isReady: boolean;
  /**
   * @returns how many of them, counted from the first, others have for good; fewer than all when one was refused.
   * @throws Error when that cannot be known.
   */
  abstract publish(notices: readonly SessionNotice[]): Promise<number>;
  /**
   * @returns false when it was refused.
   * @throws Error when it cannot be known whether others have it.
   */
  abstract tellHeldList(notice: HeldListNotice): Promise<boolean>;
  /** Calls `listener` each time it becomes ready. @returns how to stop listening. */
  abstract onReady(listener: () => void): () => void;
}
