import { advance, isCurrentHandle } from '../../domain/oauth/authorization.ts';
import { createHandle, hashSecret } from '../../domain/oauth/handle.ts';
import type { PendingWebStep } from '../../domain/oauth/interaction.ts';
import { Failure, type FailureCode } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { AcceptInteractionPage } from './accept-interaction.ts';
import { type InteractionRun, InteractionSteps } from './interaction-steps.ts';
import { isBoundBrowser } from './page-visits.ts';
import { authorizationOf } from './pushed-requests.ts';
import { type ErrorResponse, endAuthorization, responseTo } from './wallet-responses.ts';

/** Parameters of the return from the tenant's page. */
export type PageReturn = {
  readonly pageHandle: string | undefined;
  /** Set when the user cancelled there. */
  readonly error: string | undefined;
  /** Cookies of the browser by the id of the authorization. */
  readonly browserSecrets: ReadonlyMap<string, string>;
};

export type ReturnedBrowser = {
  /** Address of the wallet. */
  readonly location: string;
  readonly authorizationId: string;
};

/**
 * Redirects the browser from a page of the tenant back to the wallet. A user who follows a link of an attacker must not end up in the
 * attacker's wallet, so only the browser that the wallet opened may continue. After the last step it gets the code, which is useless
 * without the verifier of the wallet; before that a new `auth_session` (OpenID4VCI 1.1 section 6.2.1.2).
 */
export class ReturnToInteraction extends needs({
  ...TRANSACTION_PORTS,
  random: Random,
  interactionSteps: InteractionSteps,
  acceptInteractionPage: AcceptInteractionPage,
}) {
  /** @throws Failure `invalid_request` for a page; a request of another browser changes nothing. */
  async execute(tenantId: TenantId, returned: PageReturn): Promise<ReturnedBrowser> {
    const { pageHandle = '', error, browserSecrets } = returned;
    const now = this.ports.clock.now();
    const { tenant, authorization } = await authorizationOf(this.ports, tenantId, pageHandle);
    if (!isCurrentHandle(authorization, 'page', pageHandle, now)) throw createStepOverError();
    const { interaction, request } = authorization;
    const pending = interaction?.pending;
    if (interaction === undefined || pending?.kind !== 'web' || request.redirectUri === undefined) throw createStepOverError();
    if (!isBoundBrowser(authorization, browserSecrets)) throw createStepOverError();
    const run = { tenant, now, authorization, interaction, session: undefined, consumed: NOTHING_CONSUMED };
    const response =
      error !== undefined
        ? await this.#cancel(run)
        : interaction.actions.length > 1
          ? await this.#replaceSession(run, pending)
          : await this.#finish(run, pending);
    return { location: responseTo(tenant, authorization, response), authorizationId: authorization.id };
  }

  async #cancel({ tenant, authorization, now }: InteractionRun): Promise<ErrorResponse> {
    const change = { authorization: endAuthorization(authorization) };
    if (!(await this.ports.store.commit(tenant.tenantId, change, now)).done) throw createStepOverError();
    return { error: 'access_denied', description: 'the user cancelled' };
  }

  /** The wallet continues with an `auth_session` that only this browser knows. */
  async #replaceSession({ tenant, authorization, interaction, now }: InteractionRun, pending: PendingWebStep) {
    const { store, random } = this.ports;
    const secret = random.token(256);
    const nextAuthorization = advance(authorization, {
      handles: { auth_session: hashSecret(secret) },
      interaction: { ...interaction, pending: { ...pending, hasReturned: true } },
    });
    if (!(await store.commit(tenant.tenantId, { authorization: nextAuthorization }, now)).done) throw createStepOverError();
    return { authSession: createHandle(authorization.id, secret) };
  }

  async #finish(run: InteractionRun, pending: PendingWebStep): Promise<{ readonly code: string } | ErrorResponse> {
    const { interactionSteps, acceptInteractionPage } = this.ports;
    try {
      const runWithOffer = await interactionSteps.withOffer(run);
      return { code: await acceptInteractionPage.finish(runWithOffer, pending) };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.code === 'access_denied') return { error: 'access_denied', description: error.message };
      // Another browser, or a duplicate request.
      throw SESSION_FAILURES.includes(error.code) ? createStepOverError() : error;
    }
  }
}

/** A browser is not authenticated and consumes nothing. */
const NOTHING_CONSUMED = { client: { kind: 'anonymous', clientId: undefined, used: [] }, used: [] } as const;

/** The failures of an unknown session in the supported drafts. */
const SESSION_FAILURES: readonly FailureCode[] = ['invalid_session', 'invalid_request'];

function createStepOverError(): Failure {
  return new Failure('invalid_request', 'this step is unknown, expired or already completed, or began in another browser');
}
