import { z } from 'zod';
import { GetIssuerMetadata } from '../../../application/issuance/issuer-metadata.ts';
import type { PortsOf } from '../../../application/needs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { languageRanges, prefersJwt } from '../negotiation.ts';
import { family, type Reply, type Route, route } from '../route.ts';

const USE_CASES = { getIssuerMetadata: GetIssuerMetadata };
type UseCases = PortsOf<typeof USE_CASES>;

const Tenant = z.object({ tenant: z.string().max(63) });
const OfConfiguration = z.object({ tenant: z.string().max(63), id: z.string().max(128) });
const tag = 'Wallet: issuance';
const Document = z.record(z.string(), z.unknown());

/** Metadata changes rarely, but a change must reach wallets soon. */
export const DOCUMENT_HEADERS = { 'Cache-Control': 'public, max-age=60', 'Access-Control-Allow-Origin': '*' };

function json(text: string): Reply {
  return { status: 200, text, contentType: 'application/json', headers: DOCUMENT_HEADERS };
}

/** What an issuer tells about itself, its authorization server, its keys and its credential types. */
export const issuanceMetadataRoutes = family(USE_CASES, (useCases) => [
  ...issuerRoutes(useCases),
  ...serverRoutes(useCases),
  jwksRoute(useCases),
  ...typeRoutes(useCases),
]);

/** Each document stands at the inserted and at the suffixed well-known address (RFC 8414 section 3.1). */
function addresses(name: string): readonly string[] {
  return [`/.well-known/${name}/:tenant`, `/:tenant/.well-known/${name}`];
}

function issuerRoutes({ getIssuerMetadata }: UseCases): Route[] {
  return addresses('openid-credential-issuer').map((path) =>
    route({
      method: 'get',
      path,
      summary: 'Credential issuer metadata (OpenID4VCI 1.0 section 12.2)',
      description: 'As JSON, or signed for whoever accepts `application/jwt`; in one language on request.',
      tag,
      surface: 'document',
      access: 'public',
      params: Tenant,
      asJwt: true,
      responses: { 200: Document },
      async handle({ params, request: { headers } }) {
        const { text, signed, language } = await getIssuerMetadata.issuer(params.tenant as TenantId, {
          signed: prefersJwt(headers.accept),
          languages: languageRanges(headers['accept-language']),
        });
        return {
          status: 200,
          text,
          contentType: signed ? 'application/jwt' : 'application/json',
          headers: {
            ...DOCUMENT_HEADERS,
            Vary: 'Accept, Accept-Language',
            ...(language !== undefined && { 'Content-Language': language }),
          },
        };
      },
    }),
  );
}

function serverRoutes({ getIssuerMetadata }: UseCases): Route[] {
  return addresses('oauth-authorization-server').map((path) =>
    route({
      method: 'get',
      path,
      summary: 'Authorization server metadata (RFC 8414)',
      tag,
      surface: 'document',
      access: 'public',
      params: Tenant,
      responses: { 200: Document },
      async handle({ params }) {
        return json(await getIssuerMetadata.execute(params.tenant as TenantId, 'authorization-server'));
      },
    }),
  );
}

function jwksRoute({ getIssuerMetadata }: UseCases): Route {
  return route({
    method: 'get',
    path: '/:tenant/.well-known/jwks.json',
    summary: 'Keys that sign access tokens (RFC 7517)',
    tag,
    surface: 'document',
    access: 'public',
    params: Tenant,
    responses: { 200: z.object({ keys: z.array(Document) }) },
    async handle({ params }) {
      return json(await getIssuerMetadata.execute(params.tenant as TenantId, 'jwks'));
    },
  });
}

function typeRoutes({ getIssuerMetadata }: UseCases): Route[] {
  return [
    route({
      method: 'get',
      path: '/:tenant/vct/:id',
      summary: 'Type metadata of a credential (SD-JWT VC section 5)',
      tag,
      surface: 'document',
      access: 'public',
      params: OfConfiguration,
      responses: { 200: Document },
      async handle({ params }) {
        return json(await getIssuerMetadata.typeMetadata(params.tenant as TenantId, params.id));
      },
    }),
    route({
      method: 'get',
      path: '/:tenant/schema/:id',
      summary: 'JSON Schema that the claims of a credential fit',
      tag,
      surface: 'document',
      access: 'public',
      params: OfConfiguration,
      responses: { 200: Document },
      async handle({ params }) {
        return json(await getIssuerMetadata.schema(params.tenant as TenantId, params.id));
      },
    }),
  ];
}
