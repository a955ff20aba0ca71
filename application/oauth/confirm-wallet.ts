import { type Authorization, isCurrentHandle } from '../../domain/oauth/authorization.ts';
import { isSecret } from '../../domain/oauth/handle.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { AuthorizationCodes } from './authorization-codes.ts';
import { assertServed } from './oauth-callers.ts';
import { authorizationOf } from './pushed-requests.ts';
import { OFFER_IS_OVER } from './upstream-logins.ts';
import { DENIED, endWithout, responseTo } from './wallet-responses.ts';

/** The browser's answer to the question about an unverified wallet. */
export type Confirmation = {
  readonly decision: string | undefined;
  /** Secret of the page that was shown, so that no other party can answer for the user. */
  readonly confirmation: string | undefined;
  /** Cookies of the browser by the id of the authorization. */
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** The same error for every answer that does not belong to a page of this browser; nothing has changed then. */
const createUnknownPageError = () =>
  new Failure('invalid_request', 'this page is unknown, already answered, or belongs to another browser');

/** The user who logged in upstream approves or denies an unauthenticated wallet. */
export class ConfirmWallet extends needs({ ...TRANSACTION_PORTS, authorizationCodes: AuthorizationCodes, log: Log }) {
  /**
   * @returns the redirect to the wallet, with a code or an error.
   * @throws Failure `invalid_request` for a page, `not_found`.
   */
  async execute(tenantId: TenantId, confirmation: Confirmation): Promise<{ readonly location: string; readonly authorizationId: string }> {
    const { tenant, authorization } = await this.#find(tenantId, confirmation);
    const { decision } = confirmation;
    if (decision !== 'approve' && decision !== 'deny') throw new Failure('invalid_request', 'the decision is missing');
    const location =
      decision === 'approve' ? await this.#approve(tenant, authorization) : await endWithout(this.ports, tenant, authorization, DENIED);
    if (location === undefined) throw createUnknownPageError();
    return { location, authorizationId: authorization.id };
  }

  /** The login that this browser finished and that waits for an answer. */
  async #find(
    tenantId: TenantId,
    { confirmation = '', browserSecrets }: Confirmation,
  ): Promise<{ tenant: TenantConfiguration; authorization: Authorization }> {
    const { tenant, authorization } = await authorizationOf(this.ports, tenantId, confirmation);
    await assertServed(tenant, 'chained');
    if (!isCurrentHandle(authorization, 'confirmation', confirmation, this.ports.clock.now())) throw createUnknownPageError();
    if (authorization.stage !== 'confirming' || authorization.server !== 'chained') throw createUnknownPageError();
    // RFC 9700 section 4.7: the answer must come from the browser that logged in
    if (!isSecret(browserSecrets.get(authorization.id) ?? '', authorization.upstream?.browserHash)) throw createUnknownPageError();
    return { tenant, authorization };
  }

  /** @returns undefined when another answer was first. */
  async #approve(tenant: TenantConfiguration, authorization: Authorization): Promise<string | undefined> {
    const { authorizationCodes, clock } = this.ports;
    const { identity } = authorization;
    if (identity === undefined) throw new Error('a confirmation of nobody');
    const code = await authorizationCodes.grant(tenant, authorization, clock.now(), { identity });
    if (code !== undefined) return responseTo(tenant, authorization, { code });
    return endWithout(this.ports, tenant, authorization, OFFER_IS_OVER);
  }
}
