import { createHash, createHmac } from 'node:crypto';
import { type Grant, MAX_TX_CODE_ATTEMPTS, redeem } from '../../domain/oauth/grant.ts';
import { narrow, type PreAuthorizedCodeRequest } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration, TenantConfigurations } from '../tenant-configuration.ts';
import {
  bindsTokens,
  type OAuthCaller,
  type OAuthCallers,
  type OAuthRequest,
  replayed,
} from './oauth-callers.ts';
import type { TokenAnswer, TokenIssuer } from './token-issuer.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly oauthCallers: OAuthCallers;
  readonly tokenIssuer: TokenIssuer;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

type Redeemed = {
  readonly configured: TenantConfiguration;
  readonly grant: Grant;
  readonly caller: OAuthCaller;
};

/** A pre-authorized code for an access token (OpenID4VCI 1.0 section 6). */
export class RedeemGrant {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `invalid_grant`, `invalid_request`, and what `OAuthCallers` throws. */
  async execute(
    tenantId: TenantId,
    request: OAuthRequest,
    redemption: PreAuthorizedCodeRequest,
  ): Promise<TokenAnswer> {
    const now = this.#ports.clock.now();
    const { configured, grant, caller } =
      (await this.#redeemAtOnce(tenantId, request, redemption, now)) ??
      (await this.#redeemInSteps(tenantId, request, redemption, now));
    const configurationIds = narrow(grant.credentialConfigurationIds, redemption.wanted);
    return this.#ports.tokenIssuer.respond(configured, grant, caller, configurationIds, now);
  }

  /**
   * The plain case, in one step of the database: no transaction code, nothing to narrow, and a tenant that this
   * process knows. @returns undefined when nothing happened and the steps have to tell why.
   */
  async #redeemAtOnce(
    tenantId: TenantId,
    request: OAuthRequest,
    { code, txCode, wanted }: PreAuthorizedCodeRequest,
    now: Date,
  ): Promise<Redeemed | undefined> {
    const { store, tenantConfigurations, tokenIssuer } = this.#ports;
    const known = tenantConfigurations.latest(tenantId);
    if (known === undefined || txCode !== undefined || wanted !== undefined) return undefined;
    const caller = await this.#identify(known, request, now).catch(refusedFor);
    // The tenant may have begun to demand less since this process looked: the steps look again.
    if (caller === undefined) return undefined;
    const redemption = await tokenIssuer.redemption(known, caller, { identifiers: false }, now);
    const redeemed = await store.beats(tenantId).redeemGrant(hashCode(code), redemption, caller.used, now);
    if (typeof redeemed === 'string') throw replayed(redeemed, caller.client);
    if (redeemed === undefined) return undefined;
    const configured = tenantConfigurations.ofWallet(redeemed.head);
    // The tenant may have begun to demand more since this process looked; then the code is lost, not the demand.
    if (configured !== known) await this.#identify(configured, request, now);
    return { configured, grant: redeemed.grant, caller };
  }

  async #redeemInSteps(
    tenantId: TenantId,
    request: OAuthRequest,
    { code, txCode, wanted }: PreAuthorizedCodeRequest,
    now: Date,
  ): Promise<Redeemed> {
    const { store, tenantConfigurations, tokenIssuer } = this.#ports;
    const beats = store.beats(tenantId);
    const found = await beats.findGrant(hashCode(code));
    const configured = tenantConfigurations.ofWallet(found?.head);
    const caller = await this.#identify(configured, request, now);
    const txCodeHash = this.#hashTxCode(txCode);
    const spentGrant = found?.grant;
    if (isReplay(spentGrant, txCodeHash)) await beats.revokeGrant(spentGrant.id, now);
    const { grant, outcome } = redeem(found?.grant, txCodeHash, now);
    const configurationIds = wanted && narrow(grant.credentialConfigurationIds, wanted);
    // The attempt is taken before the comparison counts, so that many at once get no more guesses than one by one.
    if (grant.txCodeHash !== null && !(await beats.takeAttempt(grant.id, MAX_TX_CODE_ATTEMPTS)))
      throw spent();
    if (outcome === 'wrong_tx_code') throw new Failure('invalid_grant', 'the tx_code is wrong');
    const asked = { identifiers: wanted !== undefined, configurationIds };
    const redemption = await tokenIssuer.redemption(configured, caller, asked, now);
    const claimed = await beats.consumeGrant(grant.id, redemption, caller.used, now);
    if (claimed === 'spent') throw spent();
    if (claimed !== 'consumed') throw replayed(claimed, caller.client);
    return { configured, grant: { ...grant, holder: redemption.holder }, caller };
  }

  async #identify(configured: TenantConfiguration, request: OAuthRequest, now: Date): Promise<OAuthCaller> {
    const dpopRequired = await bindsTokens(configured, 'built-in');
    return this.#ports.oauthCallers.identify(configured, 'built-in', 'token', request, now, { dpopRequired });
  }

  /** Transaction codes are short, so a plain hash could be undone; this one needs our key. */
  #hashTxCode(code: string | undefined): string | null {
    return code === undefined ? null : hashTxCode(this.#ports.settings, code);
  }
}

/**
 * RFC 6749 section 4.1.2: whoever holds the tokens of a code that comes back may not be who should. Who saw the code and
 * knows no transaction code could not have redeemed it, and must not take the tokens of the one who did.
 */
function isReplay(grant: Grant | undefined, txCodeHash: string | null): grant is Grant {
  if (grant?.kind !== 'pre_authorized_code' || grant.consumedAt === null) return false;
  return grant.txCodeHash === null || grant.txCodeHash === txCodeHash;
}

function refusedFor(error: unknown): undefined {
  if (!(error instanceof Failure)) throw error;
}

export function hashCode(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}

function spent(): Failure {
  return new Failure('invalid_grant', 'the pre-authorized code is unknown, used or expired');
}

export function hashTxCode(settings: ServiceSettings, code: string): string {
  return createHmac('sha256', settings.txCodeKey).update(code).digest('base64url');
}
