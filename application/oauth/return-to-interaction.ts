import { isCurrent, moveOn } from '../../domain/oauth/authorization.ts';
import { hashSecret, makeHandle } from '../../domain/oauth/handle.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { isBoundBrowser } from './page-visits.ts';
import { authorizationOf } from './pushed-requests.ts';
import { ended, responseTo } from './wallet-responses.ts';

/** What the browser brings back from the customer's page. */
export type PageReturn = {
  readonly pageHandle: string | undefined;
  /** Set when the user gave up there. */
  readonly error: string | undefined;
  /** Cookies of browsers that were sent to pages, by the id of the authorization. */
  readonly browserSecrets: ReadonlyMap<string, string>;
};

export type ReturnedBrowser = {
  /** Where the browser goes: to the wallet. */
  readonly location: string;
  readonly authorizationId: string;
};

/**
 * The browser comes back from a page of the customer and is sent on to the wallet. Who follows a link that somebody
 * else began must not end up in that somebody's wallet, so only the browser that the wallet opened gets on. It brings
 * no code: the wallet has to prove that it is the one that began (OpenID4VCI 1.1 section 6.2.1.2).
 */
export class ReturnToInteraction extends needs({ ...WORLD, random: Random }) {
  /** @throws Failure `invalid_request` for a page; what another browser brings changes nothing. */
  async execute(tenantId: TenantId, returned: PageReturn): Promise<ReturnedBrowser> {
    const { pageHandle = '', error, browserSecrets } = returned;
    const { store, clock, random } = this.ports;
    const now = clock.now();
    const { configured, authorization } = await authorizationOf(this.ports, tenantId, pageHandle);
    if (!isCurrent(authorization, 'page', pageHandle, now)) throw over();
    const { interaction, request } = authorization;
    const pending = interaction?.pending;
    if (interaction === undefined || pending?.kind !== 'web' || request.redirectUri === undefined)
      throw over();
    const { id } = authorization;
    if (!isBoundBrowser(authorization, browserSecrets)) throw over();
    const secret = random.token(256);
    const next =
      error === undefined
        ? moveOn(authorization, {
            handles: { auth_session: hashSecret(secret) },
            interaction: { ...interaction, pending: { ...pending, isReturned: true } },
          })
        : ended(authorization);
    if (!(await store.commit(tenantId, { authorization: next }, now)).done) throw over();
    const response =
      error === undefined
        ? { authSession: makeHandle(id, secret) }
        : ({ error: 'access_denied', description: 'the user gave up' } as const);
    return { location: responseTo(configured, authorization, response), authorizationId: id };
  }
}

function over(): Failure {
  return new Failure(
    'invalid_request',
    'this step is unknown, over or done already, or began in another browser',
  );
}
