import { z } from 'zod';
import { type AuthorityDocument, AuthorityPublisher } from '../../../application/keys/publish-authorities.ts';
import { family, type Reply, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';

const CRL = 'application/pkix-crl';
const CERTIFICATE = 'application/pkix-cert';

const common = {
  method: 'get',
  tag: 'Keys',
  surface: 'document',
  access: 'public',
  params: TenantPath.extend({ id: z.string().max(128).describe('Key identifier of the authority, hexadecimal') }),
} as const;

/** Public documents to which certificates of internal CAs point (RFC 5280). */
export const authorityRoutes = family({ authorityPublisher: AuthorityPublisher }, ({ authorityPublisher }) => [
  route({
    ...common,
    path: '/:tenant/crl/:id',
    operationId: 'fetchRevocationList',
    exampleParameters: { id: '<authority>' },
    summary: 'Fetch the revocation list of an authority of the tenant (RFC 5280 section 5)',
    responses: { 200: { description: 'The list, DER', contentType: CRL }, 304: 'Not modified' },
    handle: async ({ params: { tenant, id } }) => served(await authorityPublisher.revocationList(tenant, id), CRL),
  }),
  route({
    ...common,
    path: '/:tenant/ca/:id',
    operationId: 'fetchAuthorityCertificate',
    exampleParameters: { id: '<authority>' },
    summary: 'Fetch the certificate of an authority of the tenant',
    responses: { 200: { description: 'The certificate, DER', contentType: CERTIFICATE }, 304: 'Not modified' },
    handle: async ({ params: { tenant, id } }) => served(await authorityPublisher.certificate(tenant, id), CERTIFICATE),
  }),
]);

function served({ der, etag, maxAgeSeconds }: AuthorityDocument, contentType: string): Reply {
  const headers = { 'Cache-Control': `public, max-age=${maxAgeSeconds}` };
  return { status: 200, text: der, contentType, etag, headers };
}
