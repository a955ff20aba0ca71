import { object, z } from 'zod';
import { CreatePresentationRequest } from '../../../application/verification/create-presentation-request.ts';
import { PresentationRequestBody } from '../../../application/verification/presentation-request.ts';
import { answerNameOf } from '../input/idempotency.ts';
import { family, reply, route } from '../route.ts';
import { PageUrl } from '../sessions/offer-page.routes.ts';
import { DcApiRequestsView } from './wallet.routes.ts';

const OfferView = object({
  uri: z
    .string()
    .describe(
      'Starts the wallet on the device of the browser; for a QR code use `crossDeviceUri`. With dc-api: address from which the page fetches the request and to which it posts `data` ' +
        'of the returned credential',
    ),
  session: z.string().describe('For polling and events; never shown to a wallet'),
  crossDeviceUri: z
    .string()
    .optional()
    .describe(
      'For a QR code. Belongs to the same session as `uri`; the wallet that uses it is not redirected to `redirectUri` and gets no ' +
        'response_code, so follow the session by its events. Absent with dc-api, and with `requireResponseCode: true` in the configuration, since no ' +
        'result is accepted without the response_code, which another device cannot return',
    ),
  pageUrl: PageUrl,
  dcApi: DcApiRequestsView.optional(),
}).meta({ id: 'PresentationOffer' });

export const presentationOfferRoutes = family({ createPresentationRequest: CreatePresentationRequest }, ({ createPresentationRequest }) => [
  route({
    method: 'post',
    path: '/verifier/offer',
    operationId: 'createPresentationRequest',
    rateLimit: { group: 'offer', perClient: true },
    summary: 'Request a presentation from a wallet',
    tag: 'Verifier',
    surface: 'admin',
    access: { anyOf: ['presentation:request', 'presentation:manage'], remembered: true },
    body: PresentationRequestBody,
    example: { response_type: 'uri', requestId: 'name-check' },
    responses: {
      201: OfferView,
      404: 'There is no such configuration',
      409: 'The `Idempotency-Key` was used for another request; or, with the code `session_quota_exceeded`, the open sessions of the tenant have reached the limit of bytes',
    },
    isRepeatable: true,
    async handle({ caller, body, request }) {
      const name = answerNameOf('/verifier/offer', caller, body, request);
      return reply(201, await createPresentationRequest.execute(caller, body, name));
    },
  }),
]);
