import { createHash, createHmac } from 'node:crypto';
import { type Grant, MAX_TX_CODE_ATTEMPTS, redeem, redeemable, spent } from '../../domain/oauth/grant.ts';
import { narrow, type PreAuthorizedCodeRequest } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { attempt } from '../attempt.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { OAuthCallers, type OAuthRequest, replayedBy } from './oauth-callers.ts';
import { type TokenAnswer, TokenIssuer } from './token-issuer.ts';

/** A pre-authorized code for an access token (OpenID4VCI 1.0 section 6). */
export class RedeemGrant extends needs({
  ...WORLD,
  oauthCallers: OAuthCallers,
  tokenIssuer: TokenIssuer,
  settings: ServiceSettings,
}) {
  /** @throws Failure `invalid_grant`, `invalid_request`, and what `OAuthCallers` throws. */
  execute(
    tenantId: TenantId,
    request: OAuthRequest,
    { code, txCode, wanted }: PreAuthorizedCodeRequest,
  ): Promise<TokenAnswer> {
    const { oauthCallers, tokenIssuer } = this.ports;
    return attempt(this.ports, tenantId, async (known) => {
      const { configured, now } = known;
      const caller = await oauthCallers.identify(configured, 'built-in', 'token', request, now);
      const found = await known.grant(hashCode(code));
      const txCodeHash = txCode === undefined ? null : this.#hashOf(txCode, found);
      if (isReplay(found, txCodeHash)) await known.revoke(found.id);
      const { grant, act } = redeem(found, txCodeHash, now);
      const configurationIds = narrow(grant.credentialConfigurationIds, wanted);
      const asked = { identifiers: wanted !== undefined, configurationIds: wanted && configurationIds };
      const redemption = await tokenIssuer.redemption(configured, caller, asked, now);
      const refusals = { grant: spent, session: spent, uses: replayedBy(caller) };
      const limit = grant.txCodeHash === null ? {} : { attemptsBelow: MAX_TX_CODE_ATTEMPTS };
      if (act === 'attempt') {
        await known.commit({ grant: { id: grant.id, act, attemptsBelow: MAX_TX_CODE_ATTEMPTS } }, refusals);
        throw new Failure('invalid_grant', 'the tx_code is wrong');
      }
      const change = { grant: { id: grant.id, act, redemption, ...limit }, session: redeemable(grant) };
      const redeemed = { ...grant, holder: redemption.holder };
      // Made before the code is spent: a key provider that does not answer costs the wallet nothing.
      const answer = await tokenIssuer.respond(configured, redeemed, caller, configurationIds, now);
      await known.claim({ ...change, uses: caller.used }, refusals);
      return answer;
    });
  }

  /** @returns the hash as the grant has it, under whichever secret it was made, else the present one. */
  #hashOf(txCode: string, grant: Grant | undefined): string | null {
    const hashes = hashTxCode(this.ports.settings, txCode);
    return hashes.find((hash) => hash === grant?.txCodeHash) ?? hashes[0] ?? null;
  }
}

/**
 * RFC 6749 section 4.1.2: the one who holds the tokens of a code that comes back may not be who should. Who saw the code and
 * knows no transaction code could not have redeemed it, and must not take the tokens of the one who did.
 */
function isReplay(grant: Grant | undefined, txCodeHash: string | null): grant is Grant {
  if (grant?.kind !== 'pre_authorized_code' || grant.consumedAt === null) return false;
  return grant.txCodeHash === null || grant.txCodeHash === txCodeHash;
}

export function hashCode(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}

/** Transaction codes are short, so a plain hash could be undone; this one needs our key. @returns by the present secret first. */
export function hashTxCode(settings: ServiceSettings, code: string): readonly string[] {
  return settings.txCodeKeys.map((key) => createHmac('sha256', key).update(code).digest('base64url'));
}
