import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import { hashSecret } from '../../domain/oauth/handle.ts';
import { pageOf } from '../../domain/oauth/interaction.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { interactionEndpoint } from './interaction-steps.ts';

type Ports = { readonly store: Store; readonly random: Random; readonly settings: ServiceSettings };

/** A browser on its way to a page of the customer. */
export type SentBrowser = {
  readonly location: string;
  /** What it has to keep until it comes back. */
  readonly keep: {
    readonly authorizationId: string;
    readonly browserSecret: string;
    readonly seconds: number;
  };
};

/**
 * Sends the browser to the page that is pending, and remembers which browser it was: nobody else comes back from there.
 * @returns undefined when another step was first.
 * @throws Failure `invalid_request` when no page is pending.
 */
export async function sendToPage(
  { store, random, settings }: Ports,
  tenantId: TenantId,
  authorization: Authorization,
  now: Date,
): Promise<SentBrowser | undefined> {
  const { id, interaction, expiresAt } = authorization;
  const pending = interaction?.pending;
  if (interaction === undefined || pending?.kind !== 'web') {
    throw new Failure('invalid_request', 'there is no page to go to');
  }
  const location = pageOf(interaction, interactionEndpoint(settings, tenantId));
  const browserSecret = random.token(256);
  const sent = { ...pending, browserHash: hashSecret(browserSecret) };
  const next = moveOn(authorization, { interaction: { ...interaction, pending: sent } });
  if ((await store.beats(tenantId).advanceAuthorization(next, [])) !== 'advanced') return undefined;
  const seconds = Math.ceil((expiresAt.getTime() - now.getTime()) / 1000);
  return { location, keep: { authorizationId: id, browserSecret, seconds } };
}
