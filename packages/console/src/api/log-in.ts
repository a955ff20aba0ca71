import { ask, type Caller } from './call.ts';

/** A client of the service, as its access token names it. */
export type Identity = Caller & {
  readonly clientId: string;
  /** Undefined for an account that manages tenants and belongs to none. */
  readonly tenantId: string | undefined;
  readonly roles: readonly string[];
  readonly expiresAt: Date;
};

type Answer = { readonly access_token: string; readonly expires_in: number };

/** @throws ApiFailure when the credentials are wrong. */
export async function logIn(clientId: string, secret: string): Promise<Identity> {
  const body = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
  return identityOf(await ask<Answer>(undefined, 'POST', '/oauth2/token', { body }));
}

/** @throws ApiFailure when the ticket was used, or is too old. */
export async function redeem(ticket: string): Promise<Identity> {
  return identityOf(await ask<Answer>(undefined, 'POST', '/console/login', { body: { ticket } }));
}

export function byProvider(answer: Answer): Promise<Identity> {
  return identityOf(answer);
}

type Who = { readonly clientId: string; readonly tenantId?: string; readonly roles: readonly string[] };

async function identityOf({ access_token: token, expires_in: seconds }: Answer): Promise<Identity> {
  const { clientId, tenantId, roles } = await ask<Who>({ token }, 'GET', '/console/identity');
  return { token, clientId, tenantId, roles, expiresAt: new Date(Date.now() + seconds * 1000) };
}
