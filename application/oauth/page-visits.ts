import { type Authorization, advance } from '../../domain/oauth/authorization.ts';
import { hashSecret, isSecret } from '../../domain/oauth/handle.ts';
import { webStepUrl } from '../../domain/oauth/interaction.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { interactionEndpoint } from './interaction-presentation.ts';

type Ports = { readonly store: Store; readonly random: Random };

/** A cookie that the browser keeps until it comes back. */
export type BrowserCookie = { readonly authorizationId: string; readonly browserSecret: string; readonly seconds: number };

export type PageRedirect = { readonly location: string; readonly cookie: BrowserCookie };

/**
 * Binds the pending web step to this browser: no other browser can continue it.
 * @returns undefined when a concurrent request advanced the authorization.
 * @throws Failure `invalid_request` when no page is pending.
 */
export async function bindBrowser(
  { store, random }: Ports,
  { tenantId }: TenantConfiguration,
  authorization: Authorization,
  now: Date,
): Promise<BrowserCookie | undefined> {
  const { interaction } = authorization;
  const pending = interaction?.pending;
  if (interaction === undefined || pending?.kind !== 'web') throw createNoPageError();
  const browserSecret = random.token(256);
  const bound = { ...pending, browserHash: hashSecret(browserSecret) };
  const nextAuthorization = advance(authorization, { interaction: { ...interaction, pending: bound } });
  if (!(await store.commit(tenantId, { authorization: nextAuthorization }, now)).done) return undefined;
  return cookieFor(authorization, browserSecret, now);
}

/** A cookie for the remaining lifetime of the authorization. */
export function cookieFor({ id, expiresAt }: Authorization, browserSecret: string, now: Date): BrowserCookie {
  const seconds = Math.ceil((expiresAt.getTime() - now.getTime()) / 1000);
  return { authorizationId: id, browserSecret, seconds };
}

/** @returns true if one of these cookies belongs to the browser of the web step. */
export function isBoundBrowser({ id, interaction }: Authorization, browserSecrets: ReadonlyMap<string, string>): boolean {
  const pending = interaction?.pending;
  return pending?.kind === 'web' && isSecret(browserSecrets.get(id) ?? '', pending.browserHash);
}

/**
 * Redirects the browser to the pending page.
 * @returns undefined when a concurrent request advanced the authorization.
 * @throws Failure `invalid_request` when no page is pending.
 */
export async function sendToPage(
  ports: Ports,
  tenant: TenantConfiguration,
  authorization: Authorization,
  now: Date,
): Promise<PageRedirect | undefined> {
  if (authorization.interaction === undefined) throw createNoPageError();
  const location = webStepUrl(authorization.interaction, interactionEndpoint(tenant));
  const cookie = await bindBrowser(ports, tenant, authorization, now);
  return cookie === undefined ? undefined : { location, cookie };
}

function createNoPageError(): Failure {
  return new Failure('invalid_request', 'the authorization has no pending page');
}
