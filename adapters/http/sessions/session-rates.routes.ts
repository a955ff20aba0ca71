import { object, z } from 'zod';
import { CountSessions, MAX_COUNTED, type Sample, SessionRatesQuery } from '../../../application/sessions/session-rates.ts';
import { SESSION_ROLES } from '../../../application/sessions/visibility.ts';
import { SESSION_STATUSES } from '../../../domain/sessions/session.ts';
import { SESSION_FAILURE_CODES } from '../../../domain/shared/session-failure.ts';
import { viewOf } from '../output/view-of.ts';
import { family, reply, route } from '../route.ts';

const count = z.number().int();
const SampleView = object({
  sessions: count,
  isComplete: z.boolean().describe('True for all sessions of the period; otherwise only the most recent ones are counted'),
  from: z.iso.datetime().optional().describe('Creation time of the oldest of them'),
});

const SessionRatesView = object({
  since: z.iso.datetime(),
  until: z.iso.datetime(),
  counted: SampleView.describe(`Number of sessions in \`outcomes\`: those among the newest ${MAX_COUNTED} of the tenant`),
  outcomes: z.array(object({ kind: z.enum(['issuance', 'verification']), status: z.enum(SESSION_STATUSES), count })),
  failed: SampleView.describe('Number of sessions in `failures`: at most the newest 1,000 failed ones'),
  failures: z
    .array(
      object({
        code: z.enum(SESSION_FAILURE_CODES),
        reason: z.string().optional().describe('Reason of the first failed check of a rejected presentation'),
        count,
      }),
    )
    .describe('The five most frequent causes, the most frequent first'),
  lookedAt: SampleView.describe('Number of sessions in `refusals` and `deliveries`: at most the newest 2,000 with a record'),
  refusals: z
    .array(object({ code: z.string().describe('Errors that were returned to wallets'), count }))
    .describe('The five most frequent rejections of credential requests'),
  deliveries: z.array(
    object({ webhook: z.enum(['claims', 'presentation', 'notification']), delivered: count, pending: count, failed: count }),
  ),
}).meta({ id: 'SessionRates', description: 'Outcomes of the most recent sessions' });

export const sessionRateRoutes = family({ countSessions: CountSessions }, ({ countSessions }) => [
  route({
    tag: 'Sessions',
    surface: 'admin',
    access: { anyOf: SESSION_ROLES },
    method: 'get',
    path: '/session/rates',
    operationId: 'countSessions',
    exampleParameters: { period: '7d' },
    summary: 'Count sessions by outcome',
    description:
      'Only kinds of the roles of the caller, without session contents. Each part contains its number of sessions, ' +
      'and whether it covers the whole period: for a busy tenant only the newest are counted.',
    query: SessionRatesQuery,
    responses: { 200: SessionRatesView },
    async handle({ caller, query }) {
      const rates = await countSessions.execute(caller, query);
      const { counted, failed, lookedAt } = rates;
      const samples = { counted: sampleOf(counted), failed: sampleOf(failed), lookedAt: sampleOf(lookedAt) };
      return reply(200, viewOf(SessionRatesView, { ...rates, ...samples }));
    },
  }),
]);

const sampleOf = (sample: Sample) => viewOf(SampleView, sample);
