import { object, z } from 'zod';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { RevokeBySubject, SubjectRevocation } from '../../../application/status-lists/revoke-by-subject.ts';
import { Revocation, RevokeSession } from '../../../application/status-lists/revoke-session.ts';
import { ListSessionStatuses, SessionStatusesQuery } from '../../../application/status-lists/session-statuses.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { nextPage } from '../output/next-page.ts';
import { viewOf } from '../output/view-of.ts';
import { family, reply, route } from '../route.ts';

const USE_CASES = {
  revokeSession: RevokeSession,
  revokeBySubject: RevokeBySubject,
  listSessionStatuses: ListSessionStatuses,
  settings: ServiceSettings,
};

const CredentialStatusView = object({
  statusListId: z.string(),
  uri: z.string().describe('Address of the list in the credential'),
  index: z.number().int().describe('`idx` of the credential'),
  bits: z
    .union([z.literal(1), z.literal(2), z.literal(4), z.literal(8)])
    .describe('Bits per entry of the list: 1 for valid and revoked, 2 or more also for suspended'),
  status: z.number().int().describe('0 valid, 1 revoked, 2 suspended, as stored; verifiers see it when the list is signed again'),
  credentialConfigurationId: z.string(),
  issuedAt: z.iso.datetime(),
}).meta({ id: 'CredentialStatus', description: 'Place of the status of one credential' });

/** Changes of the status of issued credentials. */
export const revocationRoutes = family(USE_CASES, ({ revokeSession, revokeBySubject, listSessionStatuses, settings }) => [
  route({
    method: 'post',
    path: '/session/revoke',
    operationId: 'revokeCredentials',
    summary: 'Revoke, suspend or reinstate the credentials of a session',
    tag: 'Sessions',
    surface: 'admin',
    access: { anyOf: ['issuance:manage', 'issuance:offer'], remembered: true },
    body: Revocation,
    example: { sessionId: '<session>', status: 1, reason: 'The employment ended' },
    responses: {
      201: object({ sessionId: z.string(), status: z.number(), changed: z.number() }).meta({ id: 'Revoked' }),
      404: 'There is no such session',
      409: 'The session issued no credential with a status, a credential is already revoked, or the status was changed concurrently',
    },
    async handle({ caller, body }) {
      const changed = await revokeSession.execute(caller, body);
      return reply(201, { sessionId: body.sessionId, status: body.status, changed });
    },
  }),
  route({
    method: 'get',
    path: '/session/:id/statuses',
    operationId: 'listSessionStatuses',
    exampleParameters: { id: '<session>', limit: 20, sort: 'asc' },
    summary: 'Status list of the credentials of a session',
    description:
      'An entry for each credential with a status, by default the oldest first, also of a deleted session. Lists that no longer exist are ' +
      'omitted. The `Link` header with `rel="next"` is the address of the next page.',
    tag: 'Sessions',
    surface: 'admin',
    access: { anyOf: ['issuance:manage', 'issuance:offer'] },
    params: object({ id: z.string().max(200).describe('Session id') }),
    query: SessionStatusesQuery,
    responses: { 200: z.array(CredentialStatusView), 404: 'There is no such session' },
    async handle({ caller, params: { id }, query }) {
      const { entries, next } = await listSessionStatuses.execute(caller, id as SessionId, query);
      const link = nextPage(`${settings.publicUrl}/session/${encodeURIComponent(id)}/statuses`, query, next);
      return reply(
        200,
        entries.map((entry) => viewOf(CredentialStatusView, entry)),
        link,
      );
    },
  }),
  route({
    method: 'post',
    path: '/credentials/revoke-by-subject',
    operationId: 'revokeCredentialsBySubject',
    summary: 'Revoke all credentials of one subject',
    description:
      'Credentials of configurations with `subjectClaims`, of all sessions; suspended ones, too. The claims that identify the ' +
      'subject are compared by a keyed hash and not stored. A call revokes the credentials of 50 sessions; a job revokes the rest within a minute, ' +
      'and `pending` is the number of remaining sessions. Credentials that were issued before the configuration had `subjectClaims` are not found.',
    tag: 'Sessions',
    surface: 'admin',
    access: { anyOf: ['issuance:manage', 'issuance:offer'] },
    body: SubjectRevocation,
    example: { claims: { personal_administrative_number: '1815-12-10' }, subjectClaims: [['personal_administrative_number']] },
    responses: {
      201: object({
        revoked: z.number().describe('Revoked credentials, without those of deleted lists'),
        pending: z.number().describe('Sessions whose credentials the job revokes'),
      }).meta({ id: 'RevokedBySubject' }),
      409: 'The claims match more credentials than one subject could have',
    },
    handle: async ({ caller, body }) => reply(201, await revokeBySubject.execute(caller, body)),
  }),
]);
