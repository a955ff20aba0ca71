import { z } from 'zod';
import { GetIssuerMetadata } from '../../../application/issuance/issuer-metadata.ts';
import { acceptedTypes, languageRanges } from '../input/negotiation.ts';
import { DOCUMENT_HEADERS, documentRoute, KEY_SET, PUBLIC_DOCUMENT } from '../output/document-route.ts';
import { family, type Route, route } from '../route.ts';
import { Document, TenantPath } from '../shapes.ts';

const tag = 'Wallet: issuance';
const OfConfiguration = TenantPath.extend({ id: z.string().max(128) });

const JSON_FORM = { type: 'application/json', names: ['application/json'] };
const JWT_FORM = { type: 'application/jwt', names: ['application/jwt'] };

/** Each document has the inserted and the suffixed well-known address (RFC 8414 section 3.1). */
function addresses(name: string, operationId: string): readonly Pick<Route, 'path' | 'operationId'>[] {
  return [
    { path: `/.well-known/${name}/:tenant`, operationId },
    { path: `/:tenant/.well-known/${name}`, operationId: `${operationId}BelowTenant` },
  ];
}

/** Metadata of an issuer, its authorization server, its keys and its credential types. */
export const issuanceMetadataRoutes = family({ metadata: GetIssuerMetadata }, ({ metadata }) => [
  ...addresses('openid-credential-issuer', 'getIssuerMetadata').map((address) =>
    route({
      ...PUBLIC_DOCUMENT,
      ...address,
      summary: 'Credential issuer metadata (OpenID4VCI 1.0 section 12.2)',
      description: 'As JSON, or signed with `Accept: application/jwt`; in one language on request.',
      tag,
      params: TenantPath,
      asJwt: true,
      responses: { 200: Document },
      async handle({ params, request: { headers } }) {
        // Every wallet reads JSON (section 12.2.2), so JSON is also the answer to a request for an unavailable form.
        const [best = JSON_FORM] = acceptedTypes(headers.accept, [JSON_FORM, JWT_FORM]);
        const { text, signed, language } = await metadata.issuer(params.tenant, {
          signed: best === JWT_FORM,
          languages: languageRanges(headers['accept-language']),
        });
        return {
          status: 200,
          text,
          contentType: (signed ? JWT_FORM : JSON_FORM).type,
          headers: {
            ...DOCUMENT_HEADERS,
            Vary: 'Accept, Accept-Language',
            ...(language !== undefined && { 'Content-Language': language }),
          },
        };
      },
    }),
  ),
  ...addresses('oauth-authorization-server', 'getServerMetadata').map((address) =>
    documentRoute({ ...address, summary: 'Authorization server metadata (RFC 8414)', tag, params: TenantPath }, ({ tenant }) =>
      metadata.execute(tenant, 'authorization-server'),
    ),
  ),
  documentRoute(
    {
      ...KEY_SET,
      path: '/:tenant/.well-known/jwks.json',
      operationId: 'getServerKeys',
      summary: 'Keys that sign access tokens (RFC 7517)',
      tag,
      params: TenantPath,
    },
    ({ tenant }) => metadata.execute(tenant, 'jwks'),
  ),
  documentRoute(
    {
      path: '/:tenant/vct/:id',
      operationId: 'getTypeMetadata',
      exampleParameters: { id: '<type>' },
      summary: 'Type metadata of a credential (SD-JWT VC section 5)',
      tag,
      params: OfConfiguration,
    },
    ({ tenant, id }) => metadata.typeMetadata(tenant, id),
  ),
  documentRoute(
    {
      path: '/:tenant/schema/:id',
      operationId: 'getCredentialSchema',
      exampleParameters: { id: '<type>' },
      summary: 'JSON Schema that the claims of a credential fit',
      tag,
      params: OfConfiguration,
    },
    ({ tenant, id }) => metadata.schema(tenant, id),
  ),
]);
