import { createHmac, hash } from 'node:crypto';
import {
  type Grant,
  invalidCodeError,
  isRedemptionRetry,
  MAX_TX_CODE_ATTEMPTS,
  redeem,
  redeemableSession,
  unusedSession,
} from '../../domain/oauth/grant.ts';
import { narrowConfigurations, type PreAuthorizedCodeRequest } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { attempt } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { FailedOffers } from './failed-offers.ts';
import { holderOf, type OAuthCaller, OAuthCallers, type OAuthRequest, replayErrorFor } from './oauth-callers.ts';
import { type TokenAnswer, TokenIssuer } from './token-issuer.ts';

/** Exchanges a pre-authorized code for an access token (OpenID4VCI 1.0 section 6). */
export class PreAuthorizedCodeGrant extends needs({
  ...TRANSACTION_PORTS,
  oauthCallers: OAuthCallers,
  tokenIssuer: TokenIssuer,
  burntOffers: FailedOffers,
  settings: ServiceSettings,
}) {
  /** @throws Failure `invalid_grant`, `invalid_request`, and what `OAuthCallers` throws. */
  answer(tenantId: TenantId, request: OAuthRequest, redemptionRequest: PreAuthorizedCodeRequest): Promise<TokenAnswer> {
    return attempt(this.ports, tenantId, async (transaction) => {
      const { tenant, now } = transaction;
      const caller = await this.ports.oauthCallers.identify(tenant, 'built-in', 'token', request, now);
      const grant = await transaction.grant(hashCode(redemptionRequest.code));
      const repeatedAnswer = await this.#repeatResponse(transaction, grant, caller, redemptionRequest);
      return repeatedAnswer ?? this.#redeem(transaction, grant, caller, redemptionRequest);
    });
  }

  async #redeem(
    transaction: TenantTransaction,
    storedGrant: Grant | undefined,
    caller: OAuthCaller,
    request: PreAuthorizedCodeRequest,
  ): Promise<TokenAnswer> {
    const { tokenIssuer } = this.ports;
    const { tenant, now } = transaction;
    const { requestedIds } = request;
    const { grant, act } = redeem(storedGrant, this.#hashOf(request.txCode, storedGrant), now);
    const configurationIds = narrowConfigurations(grant.credentialConfigurationIds, requestedIds);
    const requestedRights = { identifiers: requestedIds !== undefined, configurationIds: requestedIds && configurationIds };
    const redemption = await tokenIssuer.redemption(tenant, caller, requestedRights, now);
    let raceError: Failure | undefined;
    const createRaceError = () => (raceError = invalidCodeError());
    const refusals = { grant: createRaceError, session: invalidCodeError, uses: replayErrorFor(caller) };
    const limit = grant.txCodeHash === null ? {} : { attemptsBelow: MAX_TX_CODE_ATTEMPTS };
    if (act === 'attempt') return this.#count(transaction, grant);
    const change = { grant: { id: grant.id, act, redemption, ...limit }, session: redeemableSession(grant) };
    const redeemed = { ...grant, holder: redemption.holder };
    // Created before the code is redeemed, so that a failing key provider does not cost the wallet its code.
    const answer = await tokenIssuer.respond(tenant, redeemed, caller, configurationIds, now);
    try {
      await transaction.claim({ ...change, uses: caller.used }, refusals);
      return answer;
    } catch (error) {
      if (raceError === undefined || error !== raceError) throw error;
    }
    // The code was redeemed concurrently. A retry by the same wallet gets its answer again; any other caller gets invalid_grant.
    const currentGrant = (await transaction.reads.grantByCode(hashCode(request.code)))?.grant;
    const repeatedAnswer = await this.#repeatResponse(transaction, currentGrant, caller, request);
    if (repeatedAnswer === undefined) throw raceError;
    return repeatedAnswer;
  }

  /** Counts a wrong transaction code. The last permitted attempt fails the offer, and exactly one caller performs that. */
  async #count(transaction: TenantTransaction, { id, publicId }: Grant): Promise<never> {
    const { burntOffers } = this.ports;
    const lastAttemptError = invalidCodeError();
    try {
      const change = { id, act: 'attempt', attemptsBelow: MAX_TX_CODE_ATTEMPTS - 1 } as const;
      await transaction.commit({ grant: change }, { grant: () => lastAttemptError });
    } catch (error) {
      if (error !== lastAttemptError) throw error;
      const lastAttempt = { id, act: 'attempt', attemptsBelow: MAX_TX_CODE_ATTEMPTS } as const;
      if (!(await burntOffers.fail(transaction, lastAttempt, publicId, 'tx_code_attempts'))) throw lastAttemptError;
    }
    throw new Failure('invalid_grant', 'the tx_code is wrong');
  }

  /**
   * Repeats the response for the wallet that redeemed the code: a new access token of the same grant, and the same refresh token. The
   * grant is not changed.
   * @returns undefined for a caller that did not redeem the code.
   * @throws Failure `invalid_grant` when the wallet has used the first response.
   */
  async #repeatResponse(
    transaction: TenantTransaction,
    grant: Grant | undefined,
    caller: OAuthCaller,
    { txCode, requestedIds }: PreAuthorizedCodeRequest,
  ): Promise<TokenAnswer | undefined> {
    const { tenant, now } = transaction;
    const requestedRights = { identifiers: requestedIds !== undefined, configurationIds: requestedIds && [...new Set(requestedIds)] };
    if (!isRedemptionRetry(grant, this.#hashOf(txCode, grant), holderOf(caller), requestedRights, now)) return undefined;
    const configurationIds = grant.holder.configurationIds ?? grant.credentialConfigurationIds;
    const answer = await this.ports.tokenIssuer.respond(tenant, grant, caller, configurationIds, now);
    const change = { unrevoked: grant.id, session: unusedSession(grant), uses: caller.used };
    await transaction.claim(change, { unrevoked: invalidCodeError, session: invalidCodeError, uses: replayErrorFor(caller) });
    return answer;
  }

  /** @returns the hash in the grant if it matches under any secret, otherwise the one under the current secret. */
  #hashOf(txCode: string | undefined, grant: Grant | undefined): string | null {
    if (txCode === undefined) return null;
    const hashes = hashTxCode(this.ports.settings, txCode);
    return hashes.find((hash) => hash === grant?.txCodeHash) ?? hashes[0] ?? null;
  }
}

export function hashCode(code: string): string {
  return hash('sha256', code, 'base64url');
}

/** Keyed, since a plain hash of a short code could be reversed. @returns hashes by secret, the current one first. */
export function hashTxCode(settings: ServiceSettings, code: string): readonly string[] {
  // Keyboards produce the same letter with and without combining characters.
  const normalizedCode = code.normalize('NFC');
  return settings.txCodeKeys.map((key) => createHmac('sha256', key).update(normalizedCode).digest('base64url'));
}
