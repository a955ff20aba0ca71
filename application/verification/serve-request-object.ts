import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { type Session, statusAt, type VerificationRequest } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import { type DcqlQuery, SUPPORTED_FORMATS } from '../../domain/verification/dcql/query.ts';
import { REQUEST_OBJECT_TYPE } from '../../domain/verification/request-object.ts';
import { checkWalletParameters, type WalletParameters } from '../../domain/verification/wallet-parameters.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Kms } from '../ports/kms.ts';
import type { Store } from '../ports/store.ts';
import { signJwt } from '../steps/sign-jwt.ts';
import type { TenantViews } from '../steps/tenant-views.ts';
import { chainOfClientId } from './access-chain.ts';

type Ports = {
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly clock: Clock;
  readonly kms: Kms;
  readonly eventBus: EventBus;
};

/** Hands the signed request to a wallet (OpenID4VP 1.0 section 5.10), as often as it asks before it answers. */
export class ServeRequestObject {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @returns the compact request object, the same bytes each time unless the wallet brings a nonce of its own.
   * @throws Failure `not_found`; `gone` once the request has expired or was answered; `invalid_request` when the
   *   wallet's parameters cannot be met.
   */
  async execute(tenantId: TenantId, publicId: PublicId, wallet: WalletParameters = {}): Promise<string> {
    const { store, tenantViews, clock, eventBus } = this.#ports;
    const beats = store.beats(tenantId);
    // What a wallet cannot answer is not fetched by it, so it is looked at before.
    const asked = wallet.wallet_metadata === undefined ? undefined : await beats.findByPublicId(publicId);
    checkWalletParameters(wallet, formatsOf(asked?.session?.request));
    const now = clock.now();
    const found = await beats.fetchSession(publicId, now);
    const view = tenantViews.ofWallet(found?.head);
    const session = found?.session;
    if (session?.kind !== 'verification') throw new Failure('not_found', 'unknown address');
    if (found?.changed === true) eventBus.publish({ type: 'session', tenantId, sessionId: session.id });
    const request = servable(session, now);
    const chains = await view.keyChains();
    // A key that was taken away speaks for the tenant no longer, not even in what it signed before.
    const chain = view.derive(`access/${request.clientId}`, () => chainOfClientId(chains, request.clientId));
    if (chain === undefined || chain.active.notAfter <= now)
      throw new Failure('gone', 'the request is no longer served');
    return wallet.wallet_nonce === undefined
      ? request.requestObject
      : this.#signFor(chain, request, wallet.wallet_nonce);
  }

  /** OpenID4VP 1.0 section 5.10: the wallet's nonce comes back inside the signed request. */
  async #signFor(chain: KeyChain, request: VerificationRequest, walletNonce: string): Promise<string> {
    const claims = parseCompactJws(request.requestObject)?.payload;
    if (claims === undefined) throw new Failure('gone', 'the request is no longer served');
    const payload = { ...claims, wallet_nonce: walletNonce };
    return signJwt(this.#ports.kms, { chain, typ: REQUEST_OBJECT_TYPE, payload });
  }
}

function formatsOf(request: Session['request'] | undefined): readonly string[] {
  if (request?.kind !== 'verification') return SUPPORTED_FORMATS;
  const { credentials } = request.dcqlQuery as unknown as DcqlQuery;
  return credentials.map(({ format }) => format);
}

function servable(session: Session, now: Date): VerificationRequest {
  const { request, claimedAt } = session;
  const status = statusAt(session, now);
  if (status === 'expired') throw new Failure('gone', 'the request has expired');
  const isOpen = status === 'active' || status === 'fetched';
  if (!isOpen || claimedAt !== null || request?.kind !== 'verification') {
    throw new Failure('gone', 'the request was answered already');
  }
  return request;
}
