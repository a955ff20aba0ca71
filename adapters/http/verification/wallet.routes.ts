import { looseObject, object, z } from 'zod';
import { ReceiveDcApiResponse, ReceiveResponse } from '../../../application/verification/receive-response.ts';
import { ServeDcApiRequest, ServeRequestObject } from '../../../application/verification/serve-request-object.ts';
import { ShowPresented } from '../../../application/verification/show-presented.ts';
import { CROSS_DEVICE_PATH } from '../../../application/verification/wallet-link.ts';
import { MAX_RESPONSE_BYTES } from '../../../domain/formats/credential-size.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { pageReply } from '../pages/page.ts';
import { presentedPage } from '../pages/presented-page.ts';
import { readerOf } from '../pages/reader.ts';
import { family, type Reply, reply, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';

const common = { tag: 'Wallet: presentation', surface: 'vp', access: 'public' } as const;
const MEDIA_TYPE = 'application/oauth-authz-req+jwt';

/** Address of a presentation request for wallets and pages. */
const params = object({ tenant: z.string().transform((id) => id as TenantId), requestId: z.string().transform((id) => id as PublicId) });
const requestRoute = {
  ...common,
  path: '/:tenant/request/:requestId',
  params,
  responses: {
    200: { description: 'The signed request', contentType: MEDIA_TYPE },
    404: 'No such request',
    410: 'Expired or already answered',
  },
} as const;

/** Target of `crossDeviceUri`; its `requestId` is that of the request, a dot and the key of the link. */
const crossDeviceRoute = {
  ...requestRoute,
  path: `/:tenant/request/:requestId/${CROSS_DEVICE_PATH}`,
  description:
    'The same request with another `state`. The response to it is not redirected to the `redirectUri` of the request and gets no response_code',
} as const;

function parseKeyedRequestId(requestId: string): { readonly id: PublicId; readonly key: string } {
  const [id = '', key = ''] = requestId.split('.');
  return { id: id as PublicId, key };
}

const WalletForm = object({ wallet_nonce: z.string().optional(), wallet_metadata: z.string().optional() }).meta({
  id: 'RequestObjectFetch',
});

/** Documentation of the form in the API document. */
const DescribedFetch = object({
  wallet_nonce: z.string().max(512).meta({ pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$' }).optional(),
  wallet_metadata: z.string().optional().describe('JSON (OpenID4VP 1.0 section 5.10)'),
}).catchall(z.string());

const ResponseForm = object({
  vp_token: z.string().optional().describe('JSON; with response mode direct_post'),
  response: z.string().optional().describe('Compact JWE; with response mode direct_post.jwt'),
  state: z.string().optional(),
  error: z.string().optional(),
  error_description: z.string().optional(),
}).meta({ id: 'PresentationResponse' });

/** Endpoints that wallets call (OpenID4VP 1.0 sections 5.10 and 8.2). */
export const presentationWalletRoutes = family(
  { serveRequestObject: ServeRequestObject, receiveResponse: ReceiveResponse },
  ({ serveRequestObject, receiveResponse }) => [
    route({
      ...requestRoute,
      method: 'get',
      operationId: 'fetchPresentationRequest',
      summary: 'Fetch a presentation request',
      handle: async ({ params: { tenant, requestId } }) => requestObject(await serveRequestObject.execute(tenant, requestId)),
    }),
    route({
      ...requestRoute,
      method: 'post',
      operationId: 'fetchPresentationRequestForWallet',
      summary: 'Fetch a presentation request with what the wallet supports',
      body: WalletForm,
      described: { form: DescribedFetch },
      bodyKind: 'form',
      example: { wallet_nonce: 'qPmxiNFCR3QTm19POc8u' },
      handle: async ({ params: { tenant, requestId }, body }) => requestObject(await serveRequestObject.execute(tenant, requestId, body)),
    }),
    route({
      ...crossDeviceRoute,
      method: 'get',
      operationId: 'fetchCrossDeviceRequest',
      summary: 'Fetch a presentation request on another device than the browser',
      async handle({ params: { tenant, requestId } }) {
        const { id, key } = parseKeyedRequestId(requestId);
        return requestObject(await serveRequestObject.execute(tenant, id, {}, { key }));
      },
    }),
    route({
      ...crossDeviceRoute,
      method: 'post',
      operationId: 'fetchCrossDeviceRequestForWallet',
      summary: 'Fetch a presentation request on another device, with what the wallet supports',
      body: WalletForm,
      described: { form: DescribedFetch },
      bodyKind: 'form',
      example: { wallet_nonce: 'qPmxiNFCR3QTm19POc8u' },
      async handle({ params: { tenant, requestId }, body }) {
        const { id, key } = parseKeyedRequestId(requestId);
        return requestObject(await serveRequestObject.execute(tenant, id, body, { key }));
      },
    }),
    route({
      ...common,
      method: 'post',
      path: '/:tenant/response/:requestId',
      operationId: 'respondToPresentationRequest',
      summary: 'Send the response to a presentation request',
      params,
      body: ResponseForm,
      described: { form: ResponseForm.catchall(z.string()) },
      bodyKind: 'form',
      bodyLimit: MAX_RESPONSE_BYTES,
      example: { response: '<encrypted response>' },
      responses: {
        200: object({ redirect_uri: z.string() }).meta({
          id: 'PresentationReply',
          description: 'Redirect target for the browser: the address of the request, otherwise a page that asks the user to return',
        }),
        400: 'Not accepted or already answered',
        404: 'No such request',
        410: 'Expired',
        413: 'Larger than 2.5 MiB',
        415: 'Not a form',
      },
      onUnreadBody: ({ tenant, requestId }, error, id) =>
        receiveResponse.recordUnreadable(tenant as TenantId, requestId as PublicId, id, error),
      async handle({ params: { tenant, requestId }, body, request }) {
        const { redirect_uri } = await receiveResponse.execute(tenant, requestId, body, request.requestId);
        return reply(200, { redirect_uri });
      },
    }),
  ],
);

/** Page for the browser of a wallet if the request has no redirect address (HAIP 1.0 section 5.1). */
export const presentedRoutes = family({ showPresented: ShowPresented }, ({ showPresented }) => [
  route({
    tag: 'Wallet: presentation',
    surface: 'page',
    access: 'public',
    method: 'get',
    path: '/:tenant/presented',
    operationId: 'showPresentedPage',
    summary: 'Ask the user to return to the previous page',
    description: 'The `redirect_uri` of a response for requests without their own address.',
    params: TenantPath,
    responses: { 200: 'A page', 404: 'No such tenant' },
    async handle({ params: { tenant }, request }) {
      const branding = await showPresented.execute(tenant);
      return pageReply(presentedPage(branding, readerOf(request, branding)), { 'Cache-Control': 'no-store' });
    },
  }),
]);

/** OpenID4VP 1.0 section 5.10.1 */
function requestObject(text: string): Reply {
  return { status: 200, text, contentType: MEDIA_TYPE };
}

export const DcApiRequestsView = object({
  requests: z.array(object({ protocol: z.string(), data: z.record(z.string(), z.unknown()) })),
}).meta({ id: 'DigitalCredentialRequests', description: 'The property `digital` of navigator.credentials.get' });

const ResponseData = looseObject({
  vp_token: z.unknown().optional().describe('Unencrypted'),
  response: z.unknown().optional().describe('Compact JWE'),
  error: z.unknown().optional(),
}).meta({ id: 'DigitalCredentialResponse', description: 'The property `data` of the credential' });

/** Documentation of the body in the API document; other properties are ignored. */
const DescribedResponse = object({
  vp_token: z.record(z.string(), z.array(z.string())).optional().describe('Unencrypted'),
  response: z.string().optional().describe('Compact JWE'),
  error: z.string().optional(),
}).catchall(z.string());

const ofPages = { ...common, path: '/:tenant/dc-api/:requestId', params } as const;

/** Endpoints for pages that use the Digital Credentials API (OpenID4VP 1.0 appendix A). */
export const dcApiRoutes = family(
  { serveDcApiRequest: ServeDcApiRequest, receiveDcApiResponse: ReceiveDcApiResponse },
  ({ serveDcApiRequest, receiveDcApiResponse }) => [
    route({
      ...ofPages,
      method: 'get',
      operationId: 'fetchDigitalCredentialRequests',
      summary: 'Fetch a request for the Digital Credentials API',
      responses: { 200: DcApiRequestsView, 404: 'No such request', 410: 'Expired or already answered' },
      handle: async ({ params: { tenant, requestId } }) => reply(200, await serveDcApiRequest.execute(tenant, requestId)),
    }),
    route({
      ...ofPages,
      method: 'post',
      operationId: 'respondToDigitalCredentialRequest',
      summary: 'Send the response of the Digital Credentials API',
      body: ResponseData,
      described: { json: DescribedResponse },
      bodyLimit: MAX_RESPONSE_BYTES,
      example: { error: 'access_denied' },
      responses: {
        200: object({}).meta({ description: 'Accepted; the result is in the session' }),
        400: 'Not accepted or already answered',
        404: 'No such request',
        410: 'Expired',
        413: 'Larger than 2.5 MiB',
        415: 'Not JSON',
      },
      onUnreadBody: ({ tenant, requestId }, error, id) =>
        receiveDcApiResponse.recordUnreadable(tenant as TenantId, requestId as PublicId, id, error),
      async handle({ params: { tenant, requestId }, body, request }) {
        await receiveDcApiResponse.execute(tenant, requestId, body as JsonObject, request.requestId);
        return reply(200, {});
      },
    }),
  ],
);
