import { z } from 'zod';
import { ReceiveResponse } from '../../../application/verification/receive-response.ts';
import { ServeRequestObject } from '../../../application/verification/serve-request-object.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import { family, type Reply, reply, route } from '../route.ts';

const common = { tag: 'Wallet: presentation', surface: 'vp', access: 'public' } as const;
export const RESPONSE_LIMIT = 1024 * 1024;
const MEDIA_TYPE = 'application/oauth-authz-req+jwt';

/** Names a request to wallets and pages. */
export const params = z.object({
  tenant: z.string().transform((id) => id as TenantId),
  requestId: z.string().transform((id) => id as PublicId),
});
const served = {
  ...common,
  path: '/:tenant/request/:requestId',
  params,
  responses: {
    200: `The signed request, ${MEDIA_TYPE}`,
    404: 'No such request',
    410: 'Expired, or answered already',
  },
} as const;

const WalletForm = z
  .object({ wallet_nonce: z.string().optional(), wallet_metadata: z.string().optional() })
  .meta({ id: 'RequestObjectFetch' });

const ResponseForm = z
  .object({
    vp_token: z.string().optional().describe('JSON; with response mode direct_post'),
    response: z.string().optional().describe('Compact JWE; with response mode direct_post.jwt'),
    state: z.string().optional(),
    error: z.string().optional(),
    error_description: z.string().optional(),
  })
  .meta({ id: 'PresentationResponse' });

/** What wallets call (OpenID4VP 1.0 sections 5.10 and 8.2). */
export const presentationWalletRoutes = family(
  { serveRequestObject: ServeRequestObject, receiveResponse: ReceiveResponse },
  ({ serveRequestObject, receiveResponse }) => [
    route({
      ...served,
      method: 'get',
      summary: 'Fetch a presentation request',
      async handle({ params: { tenant, requestId } }) {
        return requestObject(await serveRequestObject.execute(tenant, requestId));
      },
    }),
    route({
      ...served,
      method: 'post',
      summary: 'Fetch a presentation request with what the wallet supports',
      body: WalletForm,
      bodyKind: 'form',
      example: { wallet_nonce: 'qPmxiNFCR3QTm19POc8u' },
      async handle({ params: { tenant, requestId }, body }) {
        return requestObject(await serveRequestObject.execute(tenant, requestId, body));
      },
    }),
    route({
      ...common,
      method: 'post',
      path: '/:tenant/response/:requestId',
      summary: 'Answer a presentation request',
      params,
      body: ResponseForm,
      bodyKind: 'form',
      bodyLimit: RESPONSE_LIMIT,
      example: { state: 'af0ifjsldkj', error: 'access_denied' },
      responses: {
        200: z.object({ redirect_uri: z.string().optional() }).meta({
          id: 'PresentationReply',
          description: 'Where the wallet sends the browser, if anywhere',
        }),
        400: 'Not accepted, or answered already',
        404: 'No such request',
        410: 'Expired',
        413: 'Larger than 1 MiB',
        415: 'Not a form',
      },
      async handle({ params: { tenant, requestId }, body }) {
        const { redirect_uri } = await receiveResponse.execute(tenant, requestId, body);
        return reply(200, redirect_uri === undefined ? {} : { redirect_uri });
      },
    }),
  ],
);

/** OpenID4VP 1.0 section 5.10.1 */
function requestObject(text: string): Reply {
  return { status: 200, text, contentType: MEDIA_TYPE };
}
