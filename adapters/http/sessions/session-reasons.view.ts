import { object, z } from 'zod';
import { SESSION_FAILURE_CODES } from '../../../domain/shared/session-failure.ts';

export const CheckView = object({
  id: z.string().optional().describe('Id of the credential query; absent for the response as a whole'),
  index: z.number().int().optional().describe('Index of the presentation of the query'),
  check: z.string(),
  result: z.enum(['passed', 'failed']),
  input: z.string().optional().describe('Checked names, numbers and addresses'),
  reason: z.string().optional().describe('Reason of the failure, see docs/reference/errors.md; for the whole response, in words'),
  detail: z.string().optional(),
  section: z.string().describe('Source of the requirement'),
}).meta({ id: 'Check', description: 'One check of a presentation' });

export const AttemptView = object({
  at: z.iso.datetime(),
  code: z.string().describe('Error that was sent to the wallet'),
  reason: z.string().describe('For the operator'),
  requestId: z.string().optional().describe('Request id in the log'),
}).meta({ id: 'RefusedAttempt', description: 'A request for a credential, or a response to a presentation request, that was rejected' });

export const FailureView = object({
  code: z.enum(SESSION_FAILURE_CODES).describe('See docs/reference/errors.md'),
  message: z.string().describe('For the operator'),
}).meta({ id: 'SessionFailure', description: 'Reason of a failed session' });
