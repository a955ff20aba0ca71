import { createHmac, hash } from 'node:crypto';
import { type Grant, isAnsweredAgain, MAX_TX_CODE_ATTEMPTS, redeem, redeemable, spent, unused } from '../../domain/oauth/grant.ts';
import { narrow, type PreAuthorizedCodeRequest } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { attempt } from '../transactions/attempt.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { BurntOffers } from './burnt-offers.ts';
import { holderOf, type OAuthCaller, OAuthCallers, type OAuthRequest, replayedBy } from './oauth-callers.ts';
import { type TokenAnswer, TokenIssuer } from './token-issuer.ts';

/** A pre-authorized code for an access token (OpenID4VCI 1.0 section 6). */
export class PreAuthorizedCodeGrant extends needs({
  ...WORLD,
  oauthCallers: OAuthCallers,
  tokenIssuer: TokenIssuer,
  burntOffers: BurntOffers,
  settings: ServiceSettings,
}) {
  /** @throws Failure `invalid_grant`, `invalid_request`, and what `OAuthCallers` throws. */
  answer(tenantId: TenantId, request: OAuthRequest, wanted: PreAuthorizedCodeRequest): Promise<TokenAnswer> {
    return attempt(this.ports, tenantId, async (known) => {
      const { configured, now } = known;
      const caller = await this.ports.oauthCallers.identify(configured, 'built-in', 'token', request, now);
      const found = await known.grant(hashCode(wanted.code));
      const again = await this.#again(known, found, caller, wanted);
      return again ?? this.#redeem(known, found, caller, wanted);
    });
  }

  async #redeem(known: Known, found: Grant | undefined, caller: OAuthCaller, request: PreAuthorizedCodeRequest): Promise<TokenAnswer> {
    const { tokenIssuer } = this.ports;
    const { configured, now } = known;
    const { wanted } = request;
    const { grant, act } = redeem(found, this.#hashOf(request.txCode, found), now);
    const configurationIds = narrow(grant.credentialConfigurationIds, wanted);
    const asked = { identifiers: wanted !== undefined, configurationIds: wanted && configurationIds };
    const redemption = await tokenIssuer.redemption(configured, caller, asked, now);
    let overtaken: Failure | undefined;
    const overtakes = () => (overtaken = spent());
    const refusals = { grant: overtakes, session: spent, uses: replayedBy(caller) };
    const limit = grant.txCodeHash === null ? {} : { attemptsBelow: MAX_TX_CODE_ATTEMPTS };
    if (act === 'attempt') return this.#count(known, grant);
    const change = { grant: { id: grant.id, act, redemption, ...limit }, session: redeemable(grant) };
    const redeemed = { ...grant, holder: redemption.holder };
    // Made before the code is spent: a key provider that does not answer costs the wallet nothing.
    const answer = await tokenIssuer.respond(configured, redeemed, caller, configurationIds, now);
    try {
      await known.claim({ ...change, uses: caller.used }, refusals);
      return answer;
    } catch (error) {
      if (overtaken === undefined || error !== overtaken) throw error;
    }
    // Somebody was first a moment ago, perhaps the wallet itself.
    const present = (await known.reads.grantByCode(hashCode(request.code)))?.grant;
    const again = await this.#again(known, present, caller, request);
    if (again === undefined) throw overtaken;
    return again;
  }

  /** A transaction code was wrong. The last one that may be burns the offer, and exactly one caller finds that it was the last. */
  async #count(known: Known, { id, publicId }: Grant): Promise<never> {
    const { burntOffers } = this.ports;
    const isLast = spent();
    try {
      const change = { id, act: 'attempt', attemptsBelow: MAX_TX_CODE_ATTEMPTS - 1 } as const;
      await known.commit({ grant: change }, { grant: () => isLast });
    } catch (error) {
      if (error !== isLast) throw error;
      const last = { id, act: 'attempt', attemptsBelow: MAX_TX_CODE_ATTEMPTS } as const;
      if (!(await burntOffers.burn(known, last, publicId, 'tx_code_attempts'))) throw isLast;
    }
    throw new Failure('invalid_grant', 'the tx_code is wrong');
  }

  /**
   * The answer that the wallet got already: another access token of the same grant, and the same refresh token. Nothing of
   * the grant changes.
   * @returns undefined for whoever did not redeem the code.
   * @throws Failure `invalid_grant` when the wallet has used its answer.
   */
  async #again(
    known: Known,
    grant: Grant | undefined,
    caller: OAuthCaller,
    { txCode, wanted }: PreAuthorizedCodeRequest,
  ): Promise<TokenAnswer | undefined> {
    const { configured, now } = known;
    const asked = { identifiers: wanted !== undefined, configurationIds: wanted && [...new Set(wanted)] };
    if (!isAnsweredAgain(grant, this.#hashOf(txCode, grant), holderOf(caller), asked, now)) return undefined;
    const configurationIds = grant.holder.configurationIds ?? grant.credentialConfigurationIds;
    const answer = await this.ports.tokenIssuer.respond(configured, grant, caller, configurationIds, now);
    const change = { unrevoked: grant.id, session: unused(grant), uses: caller.used };
    await known.claim(change, { unrevoked: spent, session: spent, uses: replayedBy(caller) });
    return answer;
  }

  /** @returns the hash as the grant has it, under whichever secret it was made, else the present one. */
  #hashOf(txCode: string | undefined, grant: Grant | undefined): string | null {
    if (txCode === undefined) return null;
    const hashes = hashTxCode(this.ports.settings, txCode);
    return hashes.find((hash) => hash === grant?.txCodeHash) ?? hashes[0] ?? null;
  }
}

export function hashCode(code: string): string {
  return hash('sha256', code, 'base64url');
}

/** Transaction codes are short, so a plain hash could be undone; this one needs our key. @returns by the present secret first. */
export function hashTxCode(settings: ServiceSettings, code: string): readonly string[] {
  // Keyboards write the same letter with and without combining characters.
  const written = code.normalize('NFC');
  return settings.txCodeKeys.map((key) => createHmac('sha256', key).update(written).digest('base64url'));
}
