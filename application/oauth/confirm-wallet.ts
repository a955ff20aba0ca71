import { type Authorization, isCurrent } from '../../domain/oauth/authorization.ts';
import { isSecret } from '../../domain/oauth/handle.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { WORLD } from '../transactions/known.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { assertServed } from './oauth-callers.ts';
import { authorizationOf } from './pushed-requests.ts';
import { OFFER_IS_OVER } from './upstream-logins.ts';
import { DENIED, endWithout, responseTo } from './wallet-responses.ts';

/** What the browser sends from the page that asked about an unverified wallet. */
export type Confirmation = {
  readonly decision: string | undefined;
  /** Only the page has it, so nobody else can answer in the name of the user. */
  readonly confirmation: string | undefined;
  /** What the browser was given to keep, by the id of the authorization. */
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** One sentence for everything that answers no page of this browser; nothing has changed then. */
const unknown = () => new Failure('invalid_request', 'this page is unknown, answered, or of another browser');

/** The user who logged in upstream approves or denies a wallet that proved nothing. */
export class ConfirmWallet extends needs({ ...WORLD, authorizationCodes: AuthorizationCodes, log: Log }) {
  /**
   * @returns where the browser goes: to the wallet, with a code or an error.
   * @throws Failure `invalid_request` for a page, `not_found`.
   */
  async execute(tenantId: TenantId, confirmation: Confirmation): Promise<{ readonly location: string; readonly authorizationId: string }> {
    const { configured, authorization } = await this.#find(tenantId, confirmation);
    const { decision } = confirmation;
    if (decision !== 'approve' && decision !== 'deny') throw new Failure('invalid_request', 'the decision is missing');
    const location =
      decision === 'approve'
        ? await this.#approve(configured, authorization)
        : await endWithout(this.ports, configured, authorization, DENIED);
    if (location === undefined) throw unknown();
    return { location, authorizationId: authorization.id };
  }

  /** The login that this browser finished and that waits for an answer. */
  async #find(
    tenantId: TenantId,
    { confirmation = '', browserSecrets }: Confirmation,
  ): Promise<{ configured: TenantConfiguration; authorization: Authorization }> {
    const { configured, authorization } = await authorizationOf(this.ports, tenantId, confirmation);
    await assertServed(configured, 'chained');
    if (!isCurrent(authorization, 'confirmation', confirmation, this.ports.clock.now())) throw unknown();
    if (authorization.stage !== 'confirming' || authorization.server !== 'chained') throw unknown();
    // RFC 9700 section 4.7: the one who answers is who logged in
    if (!isSecret(browserSecrets.get(authorization.id) ?? '', authorization.upstream?.browserHash)) throw unknown();
    return { configured, authorization };
  }

  /** @returns undefined when another answer was first. */
  async #approve(configured: TenantConfiguration, authorization: Authorization): Promise<string | undefined> {
    const { authorizationCodes, clock } = this.ports;
    const { identity } = authorization;
    if (identity === undefined) throw new Error('a confirmation of nobody');
    const code = await authorizationCodes.grant(configured, authorization, clock.now(), { identity });
    if (code !== undefined) return responseTo(configured, authorization, { code });
    return endWithout(this.ports, configured, authorization, OFFER_IS_OVER);
  }
}
