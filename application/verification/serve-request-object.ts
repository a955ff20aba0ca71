import type { DcqlQuery } from '../../domain/dcql/query.ts';
import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { type Session, statusAt } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { isCrossDeviceKey } from '../../domain/verification/cross-device.ts';
import { dcApiRequests } from '../../domain/verification/dc-api.ts';
import { prefixOf, REQUEST_OBJECT_TYPE, supportedOf } from '../../domain/verification/request-object.ts';
import { isDcApi, type PostedVerification, type VerificationRequest } from '../../domain/verification/verification-request.ts';
import {
  type Demands,
  parseWalletMetadata,
  parseWalletParameters,
  type WalletParameters,
  type WalletWishes,
} from '../../domain/verification/wallet-parameters.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { FetchedSessions } from '../sessions/fetched-sessions.ts';
import { attempt } from '../transactions/attempt.ts';
import { WORLD } from '../transactions/known.ts';
import { chainOfClientId } from './access-chain.ts';

export type OpenRequest<R extends VerificationRequest> = {
  readonly request: R;
  /** Who signed it; undefined for an unsigned one. */
  readonly chain: KeyChain | undefined;
};

/** Requests that can be handed out: to a wallet or to a page. */
export class OpenRequests extends needs({ ...WORLD, fetchedSessions: FetchedSessions }) {
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
      const session = await known.presentSession(publicId);
      if (session?.kind !== 'verification') throw unknown();
      const request = servable(session, now);
      if (!isWanted(request)) throw unknown();
      this.ports.fetchedSessions.note(session);
      const chains = await configured.keyChains();
      const [chain] = signersOf(request).map((signer) => {
        const own = configured.derive(`access/${signer}`, () => chainOfClientId(chains, signer));
        // A key that was taken away speaks for the tenant no longer, not even in what it signed before.
        if (own === undefined || own.active.notAfter <= now) throw new Failure('gone', 'the request is no longer served');
        return own;
      });
      return { request, chain };
    });
  }
}

/** `x509_hash` identifiers of those who signed it. */
function signersOf(request: VerificationRequest): readonly string[] {
  if (isDcApi(request) && request.clientIds !== undefined) return request.clientIds;
  const signer = request.signedAs ?? request.clientId;
  const isSigned = request.requestObject !== undefined || (isDcApi(request) && request.isoMdoc !== undefined);
  return isSigned && signer !== undefined ? [signer] : [];
}

function servable(session: Session, now: Date): VerificationRequest {
  const { request, claimedAt } = session;
  const status = statusAt(session, now);
  if (status === 'expired') throw new Failure('gone', 'the request has expired');
  const isOpen = status === 'active' || status === 'fetched';
  if (!isOpen || claimedAt !== null || request?.kind !== 'verification') throw answeredAlready();
  return request;
}

function answeredAlready(): Failure {
  return new Failure('gone', 'the request was answered already, or was cancelled');
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

/** Hands the signed request to a wallet (OpenID4VP 1.0 section 5.10), as often as it asks before it answers. */
export class ServeRequestObject extends needs({ openRequests: OpenRequests, kms: Kms, encryption: Encryption }) {
  /**
   * @param otherDevice the key of the link for a wallet on another device than the browser.
   * @returns the compact request object: the same bytes each time, unless the wallet's parameters or the device change it.
   * @throws Failure `not_found`; `gone` once the request has expired or was answered; `invalid_request` when the
   *   wallet's parameters cannot be met.
   */
  async execute(
    tenantId: TenantId,
    publicId: PublicId,
    wallet: WalletParameters = {},
    otherDevice?: { readonly key: string },
  ): Promise<string> {
    const { openRequests, encryption } = this.ports;
    const metadata = parseWalletMetadata(wallet);
    // What a wallet cannot answer is not fetched by it, so it is looked at before.
    const asked = wallet.wallet_metadata === undefined ? undefined : await openRequests.peek(tenantId, publicId);
    const wishes = parseWalletParameters(metadata, demandsOf(asked), wallet.wallet_nonce);
    const isServed = otherDevice === undefined ? isSigned : isSignedFor(otherDevice.key);
    const { request, chain } = await openRequests.fetch(tenantId, publicId, isServed);
    const state = otherDevice === undefined ? undefined : request.crossDeviceState;
    const requestObject = await this.#fulfil(request, chain, wishes, state);
    const { recipient, enc } = wishes;
    if (recipient === undefined || enc === undefined) return requestObject;
    // RFC 9101 section 4: signed, then encrypted
    return encryption.encrypt(requestObject, recipient, { enc, contentType: 'JWT' });
  }

  /** OpenID4VP 1.0 sections 5.8 and 5.10: the wallet's nonce and name go into what is signed. */
  async #fulfil(
    { requestObject }: SignedRequest,
    chain: KeyChain | undefined,
    { nonce, issuer }: WalletWishes,
    state: string | undefined,
  ): Promise<string> {
    if (nonce === undefined && issuer === undefined && state === undefined) return requestObject;
    const claims = parseCompactJws(requestObject)?.payload;
    if (claims === undefined || chain === undefined) throw new Failure('gone', 'the request is no longer served');
    const payload = { ...claims, ...defined({ aud: issuer, wallet_nonce: nonce, state }) };
    return signJwt(this.ports.kms, { chain, typ: REQUEST_OBJECT_TYPE, withKid: true, payload });
  }
}

type SignedRequest = PostedVerification & { readonly requestObject: string };

/** An unsigned request stands in the address that starts the wallet. */
function isSigned(request: VerificationRequest): request is SignedRequest {
  return !isDcApi(request) && request.requestObject !== undefined;
}

function isSignedFor(key: string) {
  return (request: VerificationRequest): request is SignedRequest => isSigned(request) && isCrossDeviceKey(key, request.crossDeviceState);
}

/** For an unknown request nothing is demanded: that it is unknown comes out afterwards. */
function demandsOf(request: VerificationRequest | undefined): Demands | undefined {
  if (request === undefined || !isSigned(request)) return undefined;
  const { credentials } = request.dcqlQuery as unknown as DcqlQuery;
  return {
    formats: supportedOf(credentials.map(({ format }) => format)),
    responseMode: request.responseMode,
    clientIdPrefix: prefixOf(request.clientId),
    signedWith: String(parseCompactJws(request.requestObject)?.header['alg']),
    encrypts: request.encryption !== undefined,
  };
}
