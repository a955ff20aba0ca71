import { isCurrent, moveOn } from '../../domain/oauth/authorization.ts';
import { hashSecret, makeHandle } from '../../domain/oauth/handle.ts';
import type { PendingWebStep } from '../../domain/oauth/interaction.ts';
import { Failure, type FailureCode } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { WORLD } from '../transactions/known.ts';
import { AcceptInteractionPage } from './accept-interaction.ts';
import { type InteractionRun, InteractionSteps } from './interaction-steps.ts';
import { isBoundBrowser } from './page-visits.ts';
import { authorizationOf } from './pushed-requests.ts';
import { ended, type Refused, responseTo } from './wallet-responses.ts';

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
 * The browser comes back from a page of the customer and is sent on to the wallet. Who follows a link that somebody else began must not end
 * up in that somebody's wallet, so only the browser that the wallet opened gets on. After the last step it brings the code, which is worth
 * nothing without the verifier of the wallet that began; before that a new name for the session (OpenID4VCI 1.1 section 6.2.1.2).
 */
export class ReturnToInteraction extends needs({
  ...WORLD,
  random: Random,
  interactionSteps: InteractionSteps,
  acceptInteractionPage: AcceptInteractionPage,
}) {
  /** @throws Failure `invalid_request` for a page; what another browser brings changes nothing. */
  async execute(tenantId: TenantId, returned: PageReturn): Promise<ReturnedBrowser> {
    const { pageHandle = '', error, browserSecrets } = returned;
    const now = this.ports.clock.now();
    const { configured, authorization } = await authorizationOf(this.ports, tenantId, pageHandle);
    if (!isCurrent(authorization, 'page', pageHandle, now)) throw over();
    const { interaction, request } = authorization;
    const pending = interaction?.pending;
    if (interaction === undefined || pending?.kind !== 'web' || request.redirectUri === undefined) throw over();
    if (!isBoundBrowser(authorization, browserSecrets)) throw over();
    const run = { configured, now, authorization, interaction, session: undefined, spending: NOTHING };
    const response =
      error !== undefined
        ? await this.#giveUp(run)
        : interaction.actions.length > 1
          ? await this.#rename(run, pending)
          : await this.#finish(run, pending);
    return { location: responseTo(configured, authorization, response), authorizationId: authorization.id };
  }

  async #giveUp({ configured, authorization, now }: InteractionRun): Promise<Refused> {
    const change = { authorization: ended(authorization) };
    if (!(await this.ports.store.commit(configured.tenantId, change, now)).done) throw over();
    return { error: 'access_denied', description: 'the user gave up' };
  }

  /** The wallet goes on by a session that only the browser knows. */
  async #rename({ configured, authorization, interaction, now }: InteractionRun, pending: PendingWebStep) {
    const { store, random } = this.ports;
    const secret = random.token(256);
    const next = moveOn(authorization, {
      handles: { auth_session: hashSecret(secret) },
      interaction: { ...interaction, pending: { ...pending, isReturned: true } },
    });
    if (!(await store.commit(configured.tenantId, { authorization: next }, now)).done) throw over();
    return { authSession: makeHandle(authorization.id, secret) };
  }

  async #finish(run: InteractionRun, pending: PendingWebStep): Promise<{ readonly code: string } | Refused> {
    const { interactionSteps, acceptInteractionPage } = this.ports;
    try {
      const offered = await interactionSteps.withOffer(run);
      return { code: await acceptInteractionPage.finish(offered, pending) };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.code === 'access_denied') return { error: 'access_denied', description: error.message };
      // Another browser, or the same one twice.
      throw SESSION_FAILURES.includes(error.code) ? over() : error;
    }
  }
}

/** A browser proves nothing but itself, and spends nothing. */
const NOTHING = { client: { kind: 'anonymous', clientId: undefined, used: [] }, used: [] } as const;

/** What a wallet is told whose session is over, by the form of the draft that it speaks. */
const SESSION_FAILURES: readonly FailureCode[] = ['invalid_session', 'invalid_request'];

function over(): Failure {
  return new Failure('invalid_request', 'this step is unknown, over or done already, or began in another browser');
}
