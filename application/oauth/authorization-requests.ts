import { scopeOf } from '../../domain/issuance/metadata.ts';
import { AUTHORIZATION_LIFETIME_SECONDS, type Authorization } from '../../domain/oauth/authorization.ts';
import { type AuthorizationRequest, parseAuthorizationRequest, type RequiredParameters } from '../../domain/oauth/authorization-request.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import { issuerOf } from '../../domain/oauth/servers.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId } from '../../domain/shared/ids.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { holderOf, type OAuthCaller } from './oauth-callers.ts';
import { isForServer, isOffered } from './offered-sessions.ts';

/** Upper bound; the public ids of sessions are shorter. */
const MAX_ISSUER_STATE_LENGTH = 256;

type Ports = { readonly store: Store; readonly settings: ServiceSettings };

/** An authorization request and the session that its `issuer_state` refers to, if there is one. */
type WalletRequestWithOffer = { readonly request: AuthorizationRequest; readonly offer: Session | undefined };

/**
 * Parses a pushed or interactive authorization request.
 * @param needs the required parameters; all by default.
 * @throws Failure `invalid_request` and the failures of `parseAuthorizationRequest`.
 */
export async function parseRequest(
  { store, settings }: Ports,
  tenant: TenantConfiguration,
  form: Readonly<Record<string, string>>,
  { client }: OAuthCaller,
  needs?: RequiredParameters,
): Promise<WalletRequestWithOffer> {
  const configurations = (await tenant.credentialConfigurations()).map((entry) => ({ id: entry.id, scope: scopeOf(entry) }));
  const namedForm = client.clientId === undefined ? form : { ...form, client_id: client.clientId };
  const issuer = issuerIdentifier(settings, tenant.tenantId);
  const offer = await sessionOf(store, tenant, form['issuer_state']);
  const offered = offer?.request?.kind === 'issuance' ? offer.configurationIds : undefined;
  const context = { issuer, configurations, ...defined({ offered }) };
  const request = parseAuthorizationRequest(namedForm, context, needs);
  const { redirectUri } = request;
  // FAPI 2.0 section 5.3.2.2: registered wallets may use only their registered redirect URIs
  if (redirectUri !== undefined && client.redirectUris?.includes(redirectUri) === false) {
    throw new Failure('invalid_request', 'redirect_uri is not registered for this client');
  }
  const registered = [...(client.redirectUris ?? []), ...(client.knownRedirectUris ?? [])];
  const isRegistered = redirectUri !== undefined && registered.includes(redirectUri);
  return { request: isRegistered ? { ...request, isRegisteredRedirect: true } : request, offer };
}

async function sessionOf(store: Store, { tenantId }: TenantConfiguration, issuerState: string | undefined): Promise<Session | undefined> {
  if (issuerState === undefined || issuerState.length > MAX_ISSUER_STATE_LENGTH) return undefined;
  return (await store.read(tenantId).sessionByPublicId(issuerState as PublicId))?.session;
}

/**
 * The session of the offer that a request refers to; null for a wallet-initiated request.
 * @throws Failure `invalid_request` for an unknown or finished offer, and without one if the server requires it.
 */
export async function findOffer(
  { settings }: Pick<Ports, 'settings'>,
  tenant: TenantConfiguration,
  server: AuthorizationServer,
  { request: { issuerState, credentialConfigurationIds }, offer }: WalletRequestWithOffer,
  now: Date,
): Promise<Authorization['session']> {
  if (issuerState === undefined) {
    const { builtInAs } = await tenant.issuance();
    // Users do not log in at the built-in server, so the offer has to identify the subject.
    if (server === 'chained' || builtInAs?.walletInitiated === true) return null;
    throw new Failure('invalid_request', 'this issuer requires the issuer_state of an offer');
  }
  const issuer = issuerOf(server, issuerIdentifier(settings, tenant.tenantId));
  const isOpen = isOffered(offer, credentialConfigurationIds, now);
  if (!isOpen || !(await isForServer(tenant, offer, issuer))) {
    throw new Failure('invalid_request', 'issuer_state belongs to no offer of these credentials');
  }
  return { id: offer.id, publicId: offer.publicId };
}

export function newAuthorization(
  random: Random,
  now: Date,
  fields: Omit<Authorization, 'id' | 'version' | 'createdAt' | 'expiresAt'>,
): Authorization {
  const expiresAt = new Date(now.getTime() + AUTHORIZATION_LIFETIME_SECONDS * 1000);
  return { id: random.token(), version: 1, createdAt: now, expiresAt, ...fields };
}

/** RFC 9449 section 10.1: the key of the proof and `dpop_jkt` must agree. */
export function boundTo(caller: OAuthCaller, jkt: string | undefined): Authorization['holder'] {
  const holder = holderOf(caller);
  if (jkt === undefined) return holder;
  if (holder.keyThumbprint !== undefined && holder.keyThumbprint !== jkt) {
    throw new Failure('invalid_dpop_proof', 'dpop_jkt is not the key of the DPoP proof');
  }
  if (!/^[A-Za-z0-9_-]{43}$/.test(jkt)) throw new Failure('invalid_request', 'dpop_jkt is not a thumbprint');
  return { ...holder, keyThumbprint: jkt };
}
