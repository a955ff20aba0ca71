import { z } from 'zod';
import { RevokeBySubject, SubjectRevocation } from '../../../application/status-lists/revoke-by-subject.ts';
import { Revocation, RevokeSession } from '../../../application/status-lists/revoke-session.ts';
import { family, reply, route } from '../route.ts';

const USE_CASES = { revokeSession: RevokeSession, revokeBySubject: RevokeBySubject };

/** How an issuer changes the status of what it issued. */
export const revocationRoutes = family(USE_CASES, ({ revokeSession, revokeBySubject }) => [
  route({
    method: 'post',
    path: '/session/revoke',
    summary: 'Revoke, suspend or reinstate the credentials of a session',
    tag: 'Sessions',
    surface: 'admin',
    access: { anyOf: ['issuance:manage', 'issuance:offer'], remembered: true },
    body: Revocation,
    example: { sessionId: '<session>', status: 1 },
    responses: {
      201: z
        .object({ sessionId: z.string(), status: z.number(), changed: z.number() })
        .meta({ id: 'Revoked' }),
      404: 'There is no such session',
      409: 'The session issued nothing that has a status, a credential was revoked already, or somebody else changed it meanwhile',
    },
    async handle({ caller, body }) {
      const changed = await revokeSession.execute(caller, body);
      return reply(201, { sessionId: body.sessionId, status: body.status, changed });
    },
  }),
  route({
    method: 'post',
    path: '/credentials/revoke-by-subject',
    summary: 'Revoke all credentials of one person',
    description:
      'Those of configurations with `subjectClaims`, whichever sessions issued them; suspended ones, too. The claims that ' +
      'identify the person are compared by a keyed hash and kept nowhere. A call revokes what 50 sessions issued; a job does ' +
      'the rest within a minute, and `pending` says for how many sessions. What was issued before the configuration ' +
      'had `subjectClaims` is not found.',
    tag: 'Sessions',
    surface: 'admin',
    access: { anyOf: ['issuance:manage', 'issuance:offer'] },
    body: SubjectRevocation,
    example: {
      claims: { personal_administrative_number: '1815-12-10' },
      subjectClaims: [['personal_administrative_number']],
    },
    responses: {
      201: z
        .object({
          revoked: z.number().describe('Credentials; those whose lists are gone are not counted'),
          pending: z.number().describe('Sessions whose credentials the job revokes'),
        })
        .meta({ id: 'RevokedBySubject' }),
      409: 'The claims fit more than one person could have',
    },
    async handle({ caller, body }) {
      return reply(201, await revokeBySubject.execute(caller, body));
    },
  }),
]);
