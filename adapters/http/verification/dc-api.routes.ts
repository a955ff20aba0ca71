import { z } from 'zod';
import { ServeDcApiRequest } from '../../../application/verification/open-requests.ts';
import { ReceiveDcApiResponse } from '../../../application/verification/receive-response.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { family, reply, route } from '../route.ts';
import { params, RESPONSE_LIMIT } from './wallet.routes.ts';

export const DcApiRequestsView = z
  .object({
    requests: z.array(z.object({ protocol: z.string(), data: z.record(z.string(), z.unknown()) })),
  })
  .meta({
    id: 'DigitalCredentialRequests',
    description: 'The member `digital` of navigator.credentials.get',
  });

const ResponseData = z
  .looseObject({
    vp_token: z.unknown().optional().describe('In the clear'),
    response: z.unknown().optional().describe('Compact JWE'),
    error: z.unknown().optional(),
  })
  .meta({ id: 'DigitalCredentialResponse', description: 'The member `data` of the credential' });

const common = {
  tag: 'Wallet: presentation',
  surface: 'vp',
  access: 'public',
  path: '/:tenant/dc-api/:requestId',
  params,
  /** Pages of the customer call it; what they may do follows from knowing the address. */
  anyOrigin: true,
} as const;

/** What pages call that ask with the Digital Credentials API (OpenID4VP 1.0 appendix A). */
export const dcApiRoutes = family(
  { serveDcApiRequest: ServeDcApiRequest, receiveDcApiResponse: ReceiveDcApiResponse },
  ({ serveDcApiRequest, receiveDcApiResponse }) => [
    route({
      ...common,
      method: 'get',
      summary: 'Fetch a request for the Digital Credentials API',
      responses: { 200: DcApiRequestsView, 404: 'No such request', 410: 'Expired, or answered already' },
      async handle({ params: { tenant, requestId } }) {
        return reply(200, await serveDcApiRequest.execute(tenant, requestId));
      },
    }),
    route({
      ...common,
      method: 'post',
      summary: 'Hand over what the Digital Credentials API answered',
      body: ResponseData,
      bodyLimit: RESPONSE_LIMIT,
      example: { error: 'access_denied' },
      responses: {
        200: z.object({}).meta({ description: 'Taken in; the result is in the session' }),
        400: 'Not accepted, or answered already',
        404: 'No such request',
        410: 'Expired',
        413: 'Larger than 1 MiB',
        415: 'Not JSON',
      },
      async handle({ params: { tenant, requestId }, body }) {
        await receiveDcApiResponse.execute(tenant, requestId, body as JsonObject);
        return reply(200, {});
      },
    }),
  ],
);
