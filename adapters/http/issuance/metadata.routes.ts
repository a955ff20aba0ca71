import { z } from 'zod';
import type { ReadIssuerMetadata } from '../../../application/issuance/read-metadata.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { languageRanges, prefersJwt } from '../negotiation.ts';
import { type Reply, type Route, Routes, route } from '../route.ts';

type UseCases = { readonly readIssuerMetadata: ReadIssuerMetadata };

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
export class IssuanceMetadataRoutes extends Routes {
  readonly routes: readonly Route[];

  constructor(useCases: UseCases) {
    super();
    this.routes = [
      ...issuerRoutes(useCases),
      ...serverRoutes(useCases),
      jwksRoute(useCases),
      ...typeRoutes(useCases),
    ];
  }
}

/** Each document stands at the inserted and at the suffixed well-known address (RFC 8414 section 3.1). */
function addresses(name: string): readonly string[] {
  return [`/.well-known/${name}/:tenant`, `/:tenant/.well-known/${name}`];
}

function issuerRoutes({ readIssuerMetadata }: UseCases): Route[] {
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
        const { text, signed, language } = await readIssuerMetadata.issuer(params.tenant as TenantId, {
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

function serverRoutes({ readIssuerMetadata }: UseCases): Route[] {
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
        return json(await readIssuerMetadata.execute(params.tenant as TenantId, 'authorization-server'));
      },
    }),
  );
}

function jwksRoute({ readIssuerMetadata }: UseCases): Route {
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
      return json(await readIssuerMetadata.execute(params.tenant as TenantId, 'jwks'));
    },
  });
}

function typeRoutes({ readIssuerMetadata }: UseCases): Route[] {
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
        return json(await readIssuerMetadata.typeMetadata(params.tenant as TenantId, params.id));
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
        return json(await readIssuerMetadata.schema(params.tenant as TenantId, params.id));
      },
    }),
  ];
}
