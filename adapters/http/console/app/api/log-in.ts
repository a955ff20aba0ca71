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

/** What the token says is not verified here: the service does that with each call. */
export function identityOf({ access_token: token, expires_in: seconds }: Answer): Identity {
  const [, payload = ''] = token.split('.');
  const claims = JSON.parse(textOf(payload)) as {
    sub: string;
    client_id?: string;
    azp?: string;
    roles?: string[];
  };
  const clientId = claims.client_id ?? claims.azp ?? claims.sub;
  return {
    token,
    clientId,
    tenantId: claims.sub === clientId ? undefined : claims.sub,
    roles: claims.roles ?? [],
    expiresAt: new Date(Date.now() + seconds * 1000),
  };
}

function textOf(encoded: string): string {
  const bytes = Uint8Array.from(atob(encoded.replaceAll('-', '+').replaceAll('_', '/')), (character) =>
    character.charCodeAt(0),
  );
  return new TextDecoder().decode(bytes);
}
