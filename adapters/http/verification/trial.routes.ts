import { object, z } from 'zod';
import { TryPresentation } from '../../../application/verification/try-presentation.ts';
import { SUPPORTED_FORMATS } from '../../../domain/dcql/formats.ts';
import { MAX_RESPONSE_BYTES } from '../../../domain/formats/credential-size.ts';
import { REFUSAL_REASONS } from '../../../domain/shared/refusal.ts';
import { family, reply, route } from '../route.ts';
import { CheckView } from '../sessions/session-reasons.view.ts';

/** Size of a DeviceResponse with the largest portrait, in hexadecimal. */
const MAX_PASTED_LENGTH = 2_400_000;

const PresentationToTry = object({
  presentation: z
    .string()
    .min(1)
    .max(MAX_PASTED_LENGTH)
    .describe(
      'An SD-JWT VC with or without key binding; a DeviceResponse, a document of one or an IssuerSigned (ISO/IEC 18013-5) in base64url, ' +
        'base64 or hexadecimal; or a vp_token in JSON, also within a response of the Digital Credentials API',
    ),
}).meta({ id: 'PresentationToTry' });

const Paths = z.array(z.array(z.union([z.string(), z.number(), z.null()])));

const TrialView = object({
  presentations: z.array(
    object({
      format: z.enum(SUPPORTED_FORMATS),
      types: z.array(z.string()).describe('As stated in the presentation, verified or not'),
      shown: Paths.optional().describe('Paths of its claims, without their values, verified or not; absent if it cannot be parsed'),
      queries: z
        .array(
          object({
            id: z.string().describe('Id of the credential query'),
            result: z.enum(['passed', 'failed']),
            reason: z.enum(REFUSAL_REASONS).optional(),
            missing: Paths.describe('Requested claims that are missing, verified or not'),
            report: z.array(CheckView).describe('Checks in order, up to the failed one'),
          }),
        )
        .describe('Credential queries of its format, or the one that it satisfies'),
    }),
  ),
  missing: z
    .array(z.string())
    .describe('Missing parts of the presentation request: ids of credential queries, or credential_sets with their position'),
  untried: z.array(z.string()).describe('Skipped checks: they require a request and the wallet that answers it'),
}).meta({ id: 'PresentationTrial', description: 'Result of a presentation for a query' });

/** Tries a presentation configuration before it is used with a wallet. */
export const presentationTrialRoutes = family({ tryPresentation: TryPresentation }, ({ tryPresentation }) => [
  route({
    method: 'post',
    path: '/verifier/config/:id/try',
    operationId: 'tryPresentation',
    exampleParameters: { id: 'name-check' },
    rateLimit: { group: 'offer', perClient: true },
    summary: 'Try a presentation configuration with a presentation',
    description:
      'Returns which credential queries a pasted presentation satisfies: signature and trust in its issuer, status, validity and claims are ' +
      'checked as for a response. The binding to a request and to its holder is not checked (`untried`), so it is never accepted as a response. ' +
      'Nothing is stored; claims are returned as paths.',
    tag: 'Verifier',
    surface: 'admin',
    access: { anyOf: ['presentation:manage'] },
    params: object({ id: z.string().max(128) }),
    body: PresentationToTry,
    bodyLimit: MAX_RESPONSE_BYTES,
    example: { presentation: 'eyJhbGciOiJFUzI1NiJ9.eyJ2Y3QiOiJ1cm46ZXVkaTpwaWQ6MSJ9.c2lnbmF0dXJl~' },
    responses: { 200: TrialView, 404: 'There is no such configuration' },
    async handle({ caller, params: { id }, body: { presentation } }) {
      return reply(200, await tryPresentation.execute(caller, id, presentation));
    },
  }),
]);
