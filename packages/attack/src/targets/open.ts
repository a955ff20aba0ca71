import type { Canary } from '../core/canary.ts';
import { NoControl } from '../core/case.ts';
import type { HttpClient, Json } from '../core/http.ts';
import type { Options } from '../core/options.ts';
import { Issuer } from './issuer.ts';
import { type OfferSource, openOffers } from './offers.ts';
import { openRequests } from './requests.ts';
import { Verifier } from './verifier.ts';
import { VidimusApi } from './vidimus-api.ts';

/** Opens the targets in the options. @throws when there are none, or they do not respond. */
export async function openTargets(
  http: HttpClient,
  canary: Canary,
  options: Options,
): Promise<{ issuer: Issuer | undefined; verifier: Verifier | undefined }> {
  const api = apiOf(http, options);
  const offers = await openOffers(http, options, api);
  const id = options.issuer?.replace(/\/$/, '') ?? offers[0]?.issuer;
  const issuer = id === undefined ? undefined : await openIssuer(http, canary, options, offers, id);
  const sources = await openRequests(http, options, api);
  const verifier = sources.length === 0 ? undefined : new Verifier({ http, canary, options, sources, issuer, api });
  if (issuer === undefined && verifier === undefined) {
    throw new NoControl('nothing to attack was given: an issuer, an offer, a request, or --vidimus');
  }
  return { issuer, verifier };
}

function apiOf(http: HttpClient, options: Options): VidimusApi | undefined {
  const { vidimus, 'client-id': id } = options;
  if (vidimus === undefined) return undefined;
  const secret = options['client-secret'] ?? process.env['VIDIMUS_CLIENT_SECRET'];
  if (id === undefined || secret === undefined) throw new NoControl('--vidimus needs --client-id and --client-secret');
  return new VidimusApi(http, vidimus, id, secret);
}

async function openIssuer(
  http: HttpClient,
  canary: Canary,
  options: Options,
  sources: readonly OfferSource[],
  id: string,
): Promise<Issuer> {
  const metadata = await document(http, id, 'openid-credential-issuer');
  if (metadata === undefined) throw new NoControl(`${id} has no metadata of a credential issuer`);
  const servers: string[] = metadata.authorization_servers ?? [id];
  const chosen = sources.map(({ server }) => server).find((server) => server !== undefined) ?? servers[0] ?? id;
  const server = (await document(http, chosen, 'oauth-authorization-server')) ?? (await document(http, chosen, 'openid-configuration'));
  if (server === undefined) throw new NoControl(`${chosen} has no metadata of an authorization server`);
  return new Issuer({ http, canary, options, sources, id, metadata, server });
}

/** The well-known URL with the path inserted (RFC 8414 section 3.1), and appended for older servers. */
async function document(http: HttpClient, id: string, name: string): Promise<Json | undefined> {
  const { origin, pathname } = new URL(id);
  const path = pathname === '/' ? '' : pathname;
  for (const address of [`${origin}/.well-known/${name}${path}`, `${origin}${path}/.well-known/${name}`]) {
    const answer = await http.call(address, { headers: { Accept: 'application/json' } });
    if (answer.status === 200 && typeof answer.json === 'object') return answer.json;
  }
  return undefined;
}
