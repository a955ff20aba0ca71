import { type Authorization, moveOn } from '../../domain/oauth/authorization.ts';
import { authorizationResponse } from '../../domain/oauth/authorization-response.ts';
import { suspend } from '../../domain/oauth/interaction.ts';
import type { WalletError } from '../../domain/oauth/upstream.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { Log } from '../ports/log.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import type { World } from '../transactions/known.ts';

/** Why a wallet gets no code, as it is told. */
export type Refused = { readonly error: WalletError; readonly description: string };

export const DENIED: Refused = { error: 'access_denied', description: 'the user denied the request' };

/** The address that leads a browser back to the wallet (RFC 6749 section 4.1.2, RFC 9207 section 2). */
export function responseTo(
  configured: TenantConfiguration,
  { server, request: { redirectUri, state } }: Authorization,
  response: { readonly code: string } | { readonly authSession: string } | Refused,
): string {
  if (redirectUri === undefined) throw new Error('an authorization without a redirect address');
  return authorizationResponse(redirectUri, { issuer: configured.issuerOf(server), state, ...response });
}

/** An authorization that nothing comes of any more. */
export function ended(authorization: Authorization): Authorization {
  const { interaction } = authorization;
  const suspended = defined({ interaction: interaction && suspend(interaction) });
  return moveOn(authorization, { stage: 'done', handles: {}, ...suspended });
}

/** Ends an authorization without a code. @returns undefined when another step was first. */
export async function endWithout(
  { store, clock, log }: Pick<World, 'store' | 'clock'> & { readonly log: Log },
  configured: TenantConfiguration,
  authorization: Authorization,
  { error, description }: Refused,
): Promise<string | undefined> {
  const change = { authorization: ended(authorization) };
  if (!(await store.commit(configured.tenantId, change, clock.now())).done) return undefined;
  const sessionId = authorization.session?.id;
  log.info('a wallet gets no code', { tenantId: configured.tenantId, sessionId, code: error });
  return responseTo(configured, authorization, { error, description });
}
