import { type Authorization, advance } from '../../domain/oauth/authorization.ts';
import { authorizationResponse } from '../../domain/oauth/authorization-response.ts';
import { withoutPending } from '../../domain/oauth/interaction.ts';
import type { WalletError } from '../../domain/oauth/upstream.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { Log } from '../ports/log.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import type { TransactionPorts } from '../transactions/tenant-transaction.ts';

/** Error response for a wallet that gets no code. */
export type ErrorResponse = { readonly error: WalletError; readonly description: string };

export const DENIED: ErrorResponse = { error: 'access_denied', description: 'the user denied the request' };

/** The redirect to the wallet (RFC 6749 section 4.1.2, RFC 9207 section 2). */
export function responseTo(
  tenant: TenantConfiguration,
  { server, request: { redirectUri, state } }: Authorization,
  response: { readonly code: string } | { readonly authSession: string } | ErrorResponse,
): string {
  if (redirectUri === undefined) throw new Error('an authorization without a redirect address');
  return authorizationResponse(redirectUri, { issuer: tenant.issuerOf(server), state, ...response });
}

/** The final state of an authorization without a code. */
export function endAuthorization(authorization: Authorization): Authorization {
  const { interaction } = authorization;
  const suspended = defined({ interaction: interaction && withoutPending(interaction) });
  return advance(authorization, { stage: 'done', handles: {}, ...suspended });
}

/** Ends an authorization without a code. @returns undefined when a concurrent request advanced the authorization. */
export async function endWithout(
  { store, clock, log }: Pick<TransactionPorts, 'store' | 'clock'> & { readonly log: Log },
  tenant: TenantConfiguration,
  authorization: Authorization,
  { error, description }: ErrorResponse,
): Promise<string | undefined> {
  const change = { authorization: endAuthorization(authorization) };
  if (!(await store.commit(tenant.tenantId, change, clock.now())).done) return undefined;
  const sessionId = authorization.session?.id;
  log.info('a wallet gets no code', { tenantId: tenant.tenantId, sessionId, code: error });
  return responseTo(tenant, authorization, { error, description });
}
