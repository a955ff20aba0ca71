import { BASE } from './call.ts';

/** The operator's OpenID provider. */
export type Provider = { readonly issuer: string; readonly clientId: string };

type Begun = { readonly state: string; readonly verifier: string; readonly provider: Provider; readonly place: string };
type Metadata = {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly authorization_response_iss_parameter_supported?: boolean;
};

const KEPT = 'login';

/** Leaves for the provider (RFC 6749 section 4.1, RFC 7636). */
export async function leaveFor(provider: Provider): Promise<void> {
  const { authorization_endpoint: endpoint } = await metadataOf(provider);
  const [state, verifier] = [random(), random()];
  const begun: Begun = { state, verifier, provider, place: location.hash };
  sessionStorage.setItem(KEPT, JSON.stringify(begun));
  const challenge = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const address = new URL(endpoint);
  for (const [name, value] of Object.entries({
    response_type: 'code',
    client_id: provider.clientId,
    redirect_uri: redirectUri(),
    scope: 'openid',
    state,
    code_challenge: encode(new Uint8Array(challenge)),
    code_challenge_method: 'S256',
  }))
    address.searchParams.set(name, value);
  location.assign(address);
}

export type Returned = { readonly access_token: string; readonly expires_in: number };

export async function comeBack(): Promise<Returned | undefined> {
  if (location.search === '') return undefined;
  const answer = new URLSearchParams(location.search);
  const kept = sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  const begun = kept === null ? undefined : (JSON.parse(kept) as Begun);
  history.replaceState(null, '', `${location.pathname}${begun?.place ?? location.hash}`);
  if (!answer.has('state')) return undefined;
  if (begun === undefined || answer.get('state') !== begun.state) throw new Error('This login was not begun in this window. Begin again.');
  const metadata = await metadataOf(begun.provider);
  const { issuer, token_endpoint: endpoint } = metadata;
  // RFC 9207 section 2.4: who answers is who was asked, and says so where the metadata say that it does.
  const isNamed = metadata.authorization_response_iss_parameter_supported === true;
  const from = answer.get('iss') ?? (isNamed ? '' : issuer);
  if (from !== issuer) throw new Error('The answer comes from another provider.');
  const code = answer.get('code');
  if (code === null) throw new Error(`The provider refused: ${answer.get('error_description') ?? answer.get('error')}`);
  const { clientId } = begun.provider;
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri(),
    client_id: clientId,
    code_verifier: begun.verifier,
  });
  const given = await fetch(endpoint, { method: 'POST', body, credentials: 'omit' });
  const token = (await given.json()) as Partial<Returned> & { readonly error?: string };
  if (!given.ok || token.access_token === undefined) throw new Error(`The provider gives no access token: ${token.error ?? given.status}`);
  return { access_token: token.access_token, expires_in: token.expires_in ?? 300 };
}

async function metadataOf({ issuer }: Provider): Promise<Metadata> {
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const answer = await fetch(address, { credentials: 'omit' }).catch(() => undefined);
  if (answer?.ok !== true)
    throw new Error(`The provider ${issuer} does not answer this page. It has to allow calls of ${location.origin} (CORS).`);
  const metadata = (await answer.json()) as Metadata;
  if (metadata.issuer !== issuer) throw new Error('The provider calls itself otherwise than OIDC names it.');
  return metadata;
}

function redirectUri(): string {
  return `${location.origin}${BASE}/console`;
}

function random(): string {
  return encode(crypto.getRandomValues(new Uint8Array(32)));
}

function encode(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');
}
