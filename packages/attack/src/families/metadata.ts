import { anyRefusal, type CaseResult, type Family, held, open } from '../core/case.ts';
import type { Json } from '../core/http.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { obtainToken } from './common.ts';

const checkMetadata =
  (fault: (issuer: Issuer) => string | undefined) =>
  async (issuer: Issuer): Promise<CaseResult> => {
    const problem = fault(issuer);
    return problem === undefined ? held('as it should be') : open(problem);
  };
const addresses = (metadata: Json): string[] =>
  Object.entries(metadata).flatMap(([name, value]) => (name.endsWith('_endpoint') ? [String(value)] : []));
const WEAK = ['none', 'HS256', 'HS384', 'HS512', 'RS1'];
const weakAlgorithms = (metadata: Json, suffix: RegExp) =>
  Object.entries(metadata).flatMap(([name, value]) =>
    suffix.test(name) && Array.isArray(value) ? value.filter((alg) => WEAK.includes(alg)).map((alg) => `${name}: ${alg}`) : [],
  );
const wellKnown = (issuer: Issuer) => {
  const { origin, pathname } = new URL(issuer.id);
  return `${origin}/.well-known/openid-credential-issuer${pathname === '/' ? '' : pathname}`;
};

export const metadata: Family<Issuer> = {
  id: 'metadata',
  title: 'What the metadata promises, and to whom',
  async control(issuer) {
    // Metadata can be checked without an offer.
    if (issuer.sources.length > 0) await obtainToken(issuer);
  },
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 12.2.4', why: 'a wallet that takes names of others is led elsewhere', safe: { status: [200] } },
      {
        'the issuer names itself letter by letter': checkMetadata(({ metadata, id }) =>
          metadata.credential_issuer === id ? undefined : String(metadata.credential_issuer),
        ),
        'every endpoint is https, or on this machine': checkMetadata(({ metadata, server, http }) =>
          [...addresses(metadata), ...addresses(server)].find((address) => !address.startsWith('https://') && !http.mayRace(address)),
        ),
        'no endpoint has a user or a fragment in its address': checkMetadata(({ metadata, server }) =>
          [...addresses(metadata), ...addresses(server)].find((address) => new URL(address).username !== '' || address.includes('#')),
        ),
        'keys are published without their private halves': checkMetadata(({ metadata }) => {
          const keys: Json[] = metadata.credential_request_encryption?.jwks?.keys ?? [];
          return keys.some((key) => 'd' in key || key.kty === 'oct') ? 'a private key' : undefined;
        }),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 8414 section 3.3', why: 'a server that answers for another one is a mix-up', safe: { status: [200] } },
      {
        'the authorization server names itself': checkMetadata(({ metadata, server, id }) =>
          (metadata.authorization_servers ?? [id]).includes(server.issuer) ? undefined : String(server.issuer),
        ),
        'the server says in its answers who it is': checkMetadata(({ server, sources }) => {
          if (!sources.some(({ kind }) => kind === 'code')) return undefined;
          return server.authorization_response_iss_parameter_supported === true ? undefined : 'no iss in answers (RFC 9207)';
        }),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 8725 section 3.2', why: 'signatures that everybody can make prove nothing', safe: { status: [200] } },
      {
        'no weak algorithm for DPoP or client authentication': checkMetadata(
          ({ server }) => weakAlgorithms(server, /signing_alg_values_supported$/)[0],
        ),
        'no weak algorithm for proofs of possession': checkMetadata(({ metadata }) => {
          const configurations: Json[] = Object.values(metadata.credential_configurations_supported ?? {});
          const algs = configurations
            .flatMap((configuration) => Object.values(configuration.proof_types_supported ?? {}) as Json[])
            .flatMap((type) => type.proof_signing_alg_values_supported ?? []);
          return algs.find((alg) => WEAK.includes(alg));
        }),
        'no plain PKCE': checkMetadata(({ server }) =>
          (server.code_challenge_methods_supported ?? []).includes('plain') ? 'plain' : undefined,
        ),
        'no implicit response type': checkMetadata(({ server }) =>
          (server.response_types_supported ?? []).find((type: string) => /token/.test(type) && type !== 'vp_token'),
        ),
      },
    ),
    ...table<Issuer>(
      { section: 'RFC 9110 section 9', why: 'documents are read and nothing else', safe: { status: [404, 405] } },
      {
        'POST to the metadata': (issuer) => issuer.http.json(wellKnown(issuer), {}),
        'DELETE of the metadata': (issuer) => issuer.http.call(wellKnown(issuer), { method: 'DELETE' }),
      },
    ),
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 12.2.2', why: 'an issuer that nobody runs has no metadata', safe: anyRefusal },
      {
        'the metadata of an issuer that there is not': (issuer) => issuer.http.call(`${wellKnown(issuer)}-nobody`),
        'a path that climbs out': (issuer) => {
          if (new URL(issuer.id).pathname === '/') throw new Skip('the issuer has no path');
          return issuer.http.call(`${new URL(issuer.id).origin}/.well-known/openid-credential-issuer/%2e%2e%2f%2e%2e%2fetc%2fpasswd`);
        },
      },
    ),
  ],
};
