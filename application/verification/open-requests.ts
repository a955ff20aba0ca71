import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { isDcApi, type Session, statusAt, type VerificationRequest } from '../../domain/sessions/session.ts';
import { fetched, isUnfetched } from '../../domain/sessions/session-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { dcApiRequests } from '../../domain/verification/dc-api.ts';
import { attempt } from '../attempt.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { chainOfClientId } from './access-chain.ts';

export type OpenRequest<R extends VerificationRequest> = {
  readonly request: R;
  /** Who signed it; undefined for an unsigned one. */
  readonly chain: KeyChain | undefined;
};

/** Requests that can be handed out: to a wallet or to a page. */
export class OpenRequests extends needs(WORLD) {
  /** The request as it was made, without marking it as fetched. @returns undefined for an unknown one. */
  async peek(tenantId: TenantId, publicId: PublicId): Promise<VerificationRequest | undefined> {
    const found = await this.ports.store.read(tenantId).sessionByPublicId(publicId);
    const request = found?.session?.request;
    return request?.kind === 'verification' ? request : undefined;
  }

  /**
   * Marks the session as fetched, the first time.
   * @param isWanted whether this kind of request is handed out where it is asked for.
   * @throws Failure `not_found`; `gone` once the request has expired or was answered, or its key was taken away.
   */
  fetch<R extends VerificationRequest>(
    tenantId: TenantId,
    publicId: PublicId,
    isWanted: (request: VerificationRequest) => request is R,
  ): Promise<OpenRequest<R>> {
    return attempt(this.ports, tenantId, async (known) => {
      const { configured, now } = known;
      const session = await known.session(publicId, isUnfetched);
      if (session?.kind !== 'verification') throw unknown();
      const request = servable(session, now);
      if (!isWanted(request)) throw unknown();
      if (isUnfetched(session))
        await known.claim({ session: fetched(session) }, { session: answeredAlready });
      if (request.requestObject === undefined) return { request, chain: undefined };
      const chain = await signerOf(configured, request);
      // A key that was taken away speaks for the tenant no longer, not even in what it signed before.
      if (chain === undefined || chain.active.notAfter <= now)
        throw new Failure('gone', 'the request is no longer served');
      return { request, chain };
    });
  }
}

async function signerOf(
  configured: TenantConfiguration,
  request: VerificationRequest,
): Promise<KeyChain | undefined> {
  const clientId = request.signedAs ?? request.clientId ?? '';
  const chains = await configured.keyChains();
  return configured.derive(`access/${clientId}`, () => chainOfClientId(chains, clientId));
}

function servable(session: Session, now: Date): VerificationRequest {
  const { request, claimedAt } = session;
  const status = statusAt(session, now);
  if (status === 'expired') throw new Failure('gone', 'the request has expired');
  const isOpen = status === 'active' || status === 'fetched';
  if (!isOpen || claimedAt !== null || request?.kind !== 'verification') {
    throw answeredAlready();
  }
  return request;
}

function answeredAlready(): Failure {
  return new Failure('gone', 'the request was answered already');
}

function unknown(): Failure {
  return new Failure('not_found', 'unknown address');
}

/** Hands a request to the page that asks its browser with it (OpenID4VP 1.0 appendix A.1). */
export class ServeDcApiRequest extends needs({ openRequests: OpenRequests }) {
  /** @throws Failure `not_found`; `gone` once the request has expired or was answered. */
  async execute(tenantId: TenantId, publicId: PublicId): Promise<JsonObject> {
    const { request } = await this.ports.openRequests.fetch(tenantId, publicId, isDcApi);
    return dcApiRequests(request);
  }
}
