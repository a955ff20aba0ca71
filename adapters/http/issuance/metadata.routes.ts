import { z } from 'zod';
import type { ReadIssuerMetadata } from '../../../application/issuance/read-metadata.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { type Route, Routes, route } from '../route.ts';

type UseCases = { readonly readIssuerMetadata: ReadIssuerMetadata };

const Tenant = z.object({ tenant: z.string().max(63) });
const tag = 'Wallet: issuance';
const Document = z.record(z.string(), z.unknown());

/** Metadata changes rarely, but a change must reach wallets soon. */
const METADATA_HEADERS = {
  'Cache-Control': 'public, max-age=60',
  'Access-Control-Allow-Origin': '*',
  Vary: 'Accept, Accept-Language',
};

/** What an issuer tells about itself, its authorization server, its keys and its credential types. */
export class IssuanceMetadataRoutes extends Routes {
  readonly routes: readonly Route[];

  constructor(useCases: UseCases) {
    super();
    this.routes = metadataRoutes(useCases);
  }
}

/** Each document stands at the inserted and at the suffixed well-known address (RFC 8414 section 3.1). */
function metadataRoutes({ readIssuerMetadata }: UseCases): Route[] {
  const documents = [
    {
      name: 'openid-credential-issuer',
      kind: 'issuer',
      summary: 'Credential issuer metadata (OpenID4VCI 1.0 section 12.2)',
    },
    {
      name: 'oauth-authorization-server',
      kind: 'authorization-server',
      summary: 'Authorization server metadata (RFC 8414)',
    },
  ] as const;
  const wellKnown = documents.flatMap(({ name, kind, summary }) =>
    [`/.well-known/${name}/:tenant`, `/:tenant/.well-known/${name}`].map((path) =>
      route({
        method: 'get',
        path,
        summary,
        tag,
        surface: 'document',
        access: 'public',
        params: Tenant,
        responses: { 200: Document },
        async handle({ params }) {
          const text = await readIssuerMetadata.execute(params.tenant as TenantId, kind);
          return { status: 200, text, contentType: 'application/json', headers: METADATA_HEADERS };
        },
      }),
    ),
  );
  return [
    ...wellKnown,
    route({
      method: 'get',
      path: '/:tenant/.well-known/jwks.json',
      summary: 'Keys that sign access tokens (RFC 7517)',
      tag,
      surface: 'document',
      access: 'public',
      params: Tenant,
      responses: { 200: z.object({ keys: z.array(Document) }) },
      async handle({ params }) {
        const text = await readIssuerMetadata.execute(params.tenant as TenantId, 'jwks');
        return { status: 200, text, contentType: 'application/json', headers: METADATA_HEADERS };
      },
    }),
    route({
      method: 'get',
      path: '/:tenant/vct/:id',
      summary: 'Type metadata of a credential (SD-JWT VC section 5)',
      tag,
      surface: 'document',
      access: 'public',
      params: z.object({ tenant: z.string().max(63), id: z.string().max(128) }),
      responses: { 200: Document },
      async handle({ params }) {
        const text = await readIssuerMetadata.typeMetadata(params.tenant as TenantId, params.id);
        return { status: 200, text, contentType: 'application/json', headers: METADATA_HEADERS };
      },
    }),
  ];
}
