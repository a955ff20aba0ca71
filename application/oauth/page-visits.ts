import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import { hashSecret, isSecret } from '../../domain/oauth/handle.ts';
import { pageOf } from '../../domain/oauth/interaction.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { interactionEndpoint } from './interaction-presentation.ts';

type Ports = { readonly store: Store; readonly random: Random };

/** What a browser has to keep until it comes back. */
export type KeptByBrowser = { readonly authorizationId: string; readonly browserSecret: string; readonly seconds: number };

/** A browser on its way to a page of the customer. */
export type SentBrowser = { readonly location: string; readonly keep: KeptByBrowser };

/**
 * Remembers which browser is at the web step that is pending: nobody else goes on from there.
 * @returns undefined when another step was first.
 * @throws Failure `invalid_request` when no page is pending.
 */
export async function bindBrowser(
  { store, random }: Ports,
  { tenantId }: TenantConfiguration,
  authorization: Authorization,
  now: Date,
): Promise<KeptByBrowser | undefined> {
  const { interaction } = authorization;
  const pending = interaction?.pending;
  if (interaction === undefined || pending?.kind !== 'web') throw noPage();
  const browserSecret = random.token(256);
  const bound = { ...pending, browserHash: hashSecret(browserSecret) };
  const next = moveOn(authorization, { interaction: { ...interaction, pending: bound } });
  if (!(await store.commit(tenantId, { authorization: next }, now)).done) return undefined;
  return keepFor(authorization, browserSecret, now);
}

/** For as long as the authorization may last. */
export function keepFor({ id, expiresAt }: Authorization, browserSecret: string, now: Date): KeptByBrowser {
  const seconds = Math.ceil((expiresAt.getTime() - now.getTime()) / 1000);
  return { authorizationId: id, browserSecret, seconds };
}

/** @returns whether one of these cookies is of the browser that is at the web step. */
export function isBoundBrowser({ id, interaction }: Authorization, browserSecrets: ReadonlyMap<string, string>): boolean {
  const pending = interaction?.pending;
  return pending?.kind === 'web' && isSecret(browserSecrets.get(id) ?? '', pending.browserHash);
}

/**
 * Sends the browser to the page that is pending.
 * @returns undefined when another step was first.
 * @throws Failure `invalid_request` when no page is pending.
 */
export async function sendToPage(
  ports: Ports,
  configured: TenantConfiguration,
  authorization: Authorization,
  now: Date,
): Promise<SentBrowser | undefined> {
  if (authorization.interaction === undefined) throw noPage();
  const location = pageOf(authorization.interaction, interactionEndpoint(configured));
  const keep = await bindBrowser(ports, configured, authorization, now);
  return keep === undefined ? undefined : { location, keep };
}

function noPage(): Failure {
  return new Failure('invalid_request', 'there is no page to go to');
}
