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
import { acceptedAlgorithms, prefixOf, REQUEST_OBJECT_TYPE } from '../../domain/verification/request-object.ts';
import { isDcApi, type PostedVerification, type VerificationRequest } from '../../domain/verification/verification-request.ts';
import {
  parseWalletMetadata,
  parseWalletParameters,
  type RequestRequirements,
  type WalletMetadata,
  type WalletParameters,
} from '../../domain/verification/wallet-parameters.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { FetchedSessions } from '../sessions/fetched-sessions.ts';
import { attempt } from '../transactions/attempt.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { chainOfClientId } from './access-chain.ts';

export type OpenRequest<R extends VerificationRequest> = {
  readonly request: R;
  /** The signing key chain; undefined for an unsigned request. */
  readonly chain: KeyChain | undefined;
};

/** Requests that can be served to a wallet or to a page. */
export class OpenRequests extends needs({ ...TRANSACTION_PORTS, fetchedSessions: FetchedSessions }) {
  /** The request without marking it as fetched. @returns undefined for an unknown one. */
  async peek(tenantId: TenantId, publicId: PublicId): Promise<VerificationRequest | undefined> {
    const storedSession = await this.ports.store.read(tenantId).sessionByPublicId(publicId);
    const request = storedSession?.session?.request;
    return request?.kind === 'verification' ? request : undefined;
  }

  /**
   * Marks the session as fetched, the first time.
   * @param isServed true for the kinds of requests that the endpoint serves.
   * @throws Failure `not_found`; `gone` once the request has expired or was answered, or its key was removed.
   */
  fetch<R extends VerificationRequest>(
    tenantId: TenantId,
    publicId: PublicId,
    isServed: (request: VerificationRequest) => request is R,
  ): Promise<OpenRequest<R>> {
    return attempt(this.ports, tenantId, async (transaction) => {
      const { tenant, now } = transaction;
      const session = await transaction.currentSession(publicId);
      if (session?.kind !== 'verification') throw unknownAddressError();
      const request = assertServable(session, now);
      if (!isServed(request)) throw unknownAddressError();
      this.ports.fetchedSessions.note(session);
      const chains = await tenant.keyChains();
      const [chain] = signersOf(request).map((signer) => {
        const signingChain = tenant.derive(`access/${signer}`, () => chainOfClientId(chains, signer));
        // A removed key no longer represents the tenant, so requests that it signed are not served.
        if (signingChain === undefined || signingChain.active.notAfter <= now) throw new Failure('gone', 'the request is no longer served');
        return signingChain;
      });
      return { request, chain };
    });
  }
}

/** `x509_hash` identifiers of the signers. */
function signersOf(request: VerificationRequest): readonly string[] {
  if (isDcApi(request) && request.clientIds !== undefined) return request.clientIds;
  const signer = request.signedAs ?? request.clientId;
  const isSigned = request.requestObject !== undefined || (isDcApi(request) && request.isoMdoc !== undefined);
  return isSigned && signer !== undefined ? [signer] : [];
}

function assertServable(session: Session, now: Date): VerificationRequest {
  const { request, claimedAt } = session;
  const status = statusAt(session, now);
  if (status === 'expired') throw new Failure('gone', 'the request has expired');
  const isOpen = status === 'active' || status === 'fetched';
  if (!isOpen || claimedAt !== null || request?.kind !== 'verification') throw alreadyAnsweredError();
  return request;
}

function alreadyAnsweredError(): Failure {
  return new Failure('gone', 'the request was already answered or cancelled');
}

function unknownAddressError(): Failure {
  return new Failure('not_found', 'unknown address');
}

/** Serves a request to the page that passes it to the browser (OpenID4VP 1.0 appendix A.1). */
export class ServeDcApiRequest extends needs({ openRequests: OpenRequests }) {
  /** @throws Failure `not_found`; `gone` once the request has expired or was answered. */
  async execute(tenantId: TenantId, publicId: PublicId): Promise<JsonObject> {
    const { request } = await this.ports.openRequests.fetch(tenantId, publicId, isDcApi);
    return dcApiRequests(request);
  }
}

/** Serves the signed request to a wallet (OpenID4VP 1.0 section 5.10), any number of times before it answers. */
export class ServeRequestObject extends needs({ openRequests: OpenRequests, kms: Kms, encryption: Encryption }) {
  /**
   * @param otherDevice the key of the link for a wallet on another device than the browser.
   * @returns the compact request object: the same bytes each time, unless the wallet's parameters or the device change it.
   * @throws Failure `not_found`; `gone` once the request has expired or was answered; `invalid_request` when the
   *   wallet does not support the request.
   */
  async execute(
    tenantId: TenantId,
    publicId: PublicId,
    wallet: WalletParameters = {},
    otherDevice?: { readonly key: string },
  ): Promise<string> {
    const { openRequests, encryption } = this.ports;
    const metadata = parseWalletMetadata(wallet);
    // A request that the wallet does not support is not marked as fetched, so this is checked first.
    const peekedRequest = wallet.wallet_metadata === undefined ? undefined : await openRequests.peek(tenantId, publicId);
    const walletParameters = parseWalletParameters(metadata, requirementsOf(peekedRequest), wallet.wallet_nonce);
    const isServed = otherDevice === undefined ? isSigned : isSignedFor(otherDevice.key);
    const { request, chain } = await openRequests.fetch(tenantId, publicId, isServed);
    const state = otherDevice === undefined ? undefined : request.crossDeviceState;
    const requestObject = await this.#signFor(request, chain, walletParameters, state);
    const { recipient, enc } = walletParameters;
    if (recipient === undefined || enc === undefined) return requestObject;
    // RFC 9101 section 4: signed, then encrypted
    return encryption.encrypt(requestObject, recipient, { enc, contentType: 'JWT' });
  }

  /** OpenID4VP 1.0 sections 5.8 and 5.10: the signed request contains the wallet's nonce and issuer. */
  async #signFor(
    { requestObject }: SignedRequest,
    chain: KeyChain | undefined,
    { nonce, issuer }: WalletMetadata,
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

/** An unsigned request is contained in the link. */
function isSigned(request: VerificationRequest): request is SignedRequest {
  return !isDcApi(request) && request.requestObject !== undefined;
}

function isSignedFor(key: string) {
  return (request: VerificationRequest): request is SignedRequest => isSigned(request) && isCrossDeviceKey(key, request.crossDeviceState);
}

/** An unknown request has no requirements; it is rejected afterwards. */
function requirementsOf(request: VerificationRequest | undefined): RequestRequirements | undefined {
  if (request === undefined || !isSigned(request)) return undefined;
  const { credentials } = request.dcqlQuery as unknown as DcqlQuery;
  return {
    formats: acceptedAlgorithms(credentials.map(({ format }) => format)),
    responseMode: request.responseMode,
    clientIdPrefix: prefixOf(request.clientId),
    signedWith: String(parseCompactJws(request.requestObject)?.header['alg']),
    encrypts: request.encryption !== undefined,
  };
}
