import { z } from 'zod';
import type { PortsOf } from '../../../application/needs.ts';
import { ServeTrustList } from '../../../application/trust-lists/serve-trust-list.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { isKnown } from '../conditional.ts';
import { family, type Route, route } from '../route.ts';

const MEDIA_TYPE = 'application/jwt';

const USE_CASES = { serveTrustList: ServeTrustList };

/** Trust lists for everybody (ETSI TS 119 602). */
export const publishedListRoutes = family(USE_CASES, routesOf);

function routesOf({ serveTrustList }: PortsOf<typeof USE_CASES>): readonly Route[] {
  return [
    route({
      method: 'get',
      path: '/:tenant/trust-list/:id',
      summary: 'Fetch a signed trust list (ETSI TS 119 602)',
      tag: 'Trust lists',
      surface: 'document',
      access: 'public',
      params: z.object({ tenant: z.string().max(63), id: z.string().max(128) }),
      responses: {
        200: `The list as a compact JWS, ${MEDIA_TYPE}`,
        304: 'Not modified',
        503: 'The list has ended and was not signed anew yet',
      },
      async handle({ params, request }) {
        const { jwt, etag, maxAgeSeconds } = await serveTrustList.execute(
          params.tenant as TenantId,
          params.id,
        );
        const headers = {
          'Access-Control-Allow-Origin': '*',
          'Cache-Control': `public, max-age=${maxAgeSeconds}`,
          ETag: etag,
        };
        if (isKnown(request.headers['if-none-match'], etag)) return { status: 304, empty: true, headers };
        return { status: 200, text: jwt, contentType: MEDIA_TYPE, headers };
      },
    }),
  ];
}
