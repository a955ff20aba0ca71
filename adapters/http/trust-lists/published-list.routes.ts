import { z } from 'zod';
import { ServeTrustList } from '../../../application/trust-lists/serve-trust-list.ts';
import { family, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';

const MEDIA_TYPE = 'application/jwt';

/** Public trust lists (ETSI TS 119 602). */
export const publishedListRoutes = family({ serveTrustList: ServeTrustList }, ({ serveTrustList }) => [
  route({
    method: 'get',
    path: '/:tenant/trust-list/:id',
    operationId: 'fetchTrustList',
    exampleParameters: { id: 'universities' },
    summary: 'Fetch a signed trust list (ETSI TS 119 602)',
    tag: 'Trust lists',
    surface: 'document',
    access: 'public',
    params: TenantPath.extend({ id: z.string().max(128) }),
    responses: {
      200: { description: 'The list as a compact JWS', contentType: MEDIA_TYPE },
      304: 'Not modified',
      503: 'The list has expired and was not signed again yet',
    },
    async handle({ params }) {
      const { jwt, etag, maxAgeSeconds } = await serveTrustList.execute(params.tenant, params.id);
      const headers = { 'Cache-Control': `public, max-age=${maxAgeSeconds}` };
      return { status: 200, text: jwt, contentType: MEDIA_TYPE, etag, headers };
    },
  }),
]);
