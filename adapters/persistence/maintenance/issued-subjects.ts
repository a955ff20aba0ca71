import type { Cipher } from '../../../application/ports/cipher.ts';
import type { IssuedSubjects, IssuedToSubject, RevocationOrder } from '../../../application/ports/issued-subjects.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { JobSql } from '../job-sql.ts';
import { FINGERPRINTS, REVOKED_SINCE_GRANT, SUBJECT_KEYS } from '../rows/subject-codec.ts';
import { namedStatement, type Row, type Statement } from '../statement.ts';

/** Revocations are kept longer than any grant yields tokens: refresh tokens live for a year at most. */
const REVOKED_KEPT_MS = 400 * 24 * 3_600_000;

/** SQL in which the dialects differ. */
export type SubjectSql = {
  /** Condition that a text is among the elements of an array parameter. */
  readonly among: (parameter: string) => string;
  /** Function that returns the greater of two numbers. */
  readonly later: string;
  /** Table `c` with the configurations of the grant `g`, one `id` per row. */
  readonly configurations: string;
  readonly noteRevoked: Statement;
};
export const POSTGRES_SUBJECTS: SubjectSql = {
  among: (parameter) => `= any(${parameter}::text[])`,
  later: 'greatest',
  configurations: 'json_array_elements_text(g.configuration_ids::json) as c(id)',
  noteRevoked: { name: 'note_revoked_subject', text: 'select note_revoked_subject_1($1, $2, $3, $4)' },
};
export const SQLITE_SUBJECTS: SubjectSql = {
  later: 'max',
  among: (parameter) => `in (select value from json_each(${parameter}))`,
  configurations: '(select value as id from json_each(g.configuration_ids)) as c',
  noteRevoked: namedStatement(
    'note_revoked_subject',
    `insert into revoked_subjects (tenant_id, fingerprint, credential_configuration_id, revoked_at, number)
     select t.id, $2, c.value, $4, coalesce((select max(number) from revoked_subjects where tenant_id = $1), 0) + 1
     from tenants t join json_each($3) c where t.id = $1
     on conflict (tenant_id, fingerprint, credential_configuration_id) do update set
       revoked_at = max(excluded.revoked_at, revoked_subjects.revoked_at), number = excluded.number`,
  ),
};

const FIND_KEY = namedStatement('subject_key', 'select * from subject_keys where tenant_id = $1');
/** Inserts nothing for a tenant that is removed at this moment. */
const NEW_KEY = namedStatement(
  'new_subject_key',
  `insert into subject_keys (tenant_id, id, secret) select t.id, $2, $3 from tenants t where t.id = $1
   on conflict do nothing`,
);
const DUE = namedStatement('due_subject_revocations', 'select * from subject_revocations where due_at <= $1 order by due_at limit $2');
const BATCHES = namedStatement(
  'batches_of_subject',
  `select batch_id from issued_subjects
   where tenant_id = $1 and fingerprint = $2 and session_id = $3 and credential_configuration_id = $4`,
);
const FULFILLED = namedStatement(
  'subject_revocation_fulfilled',
  `delete from subject_revocations
   where tenant_id = $1 and fingerprint = $2 and session_id = $3 and credential_configuration_id = $4 and due_at = $5`,
);
/** The highest number stays, so that no later revocation gets the same or a lower one. */
const FORGET_REVOKED = namedStatement(
  'forget_revoked_subjects',
  `delete from revoked_subjects where tenant_id = $1 and revoked_at < $2
     and (number is null or number < (select max(l.number) from revoked_subjects l where l.tenant_id = $1))`,
);
const POSTPONE = namedStatement(
  'postpone_subject_revocation',
  `update subject_revocations set due_at = $5
   where tenant_id = $1 and fingerprint = $2 and session_id = $3 and credential_configuration_id = $4`,
);

export function issuedSubjects(sql: JobSql, cipher: Cipher, words: SubjectSql): IssuedSubjects {
  const { among, later, configurations, noteRevoked } = words;
  /** SQL condition: the person's credentials of a configuration were revoked after the grant `g` was authorized. */
  const isRevoked = (fingerprint: string, configuration: string) =>
    `exists (select 1 from revoked_subjects r where r.tenant_id = g.tenant_id and r.fingerprint = ${fingerprint}
       and r.credential_configuration_id in ('', ${configuration}) and ${REVOKED_SINCE_GRANT})`;
  /** SQL condition: the grant `g` serves the person alone, and all of its configurations were revoked for the person. */
  const isCovered = (fingerprint: string) =>
    `not exists (select 1 from ${configurations} where not ${isRevoked(fingerprint, 'c.id')})
     and not exists (select 1 from issued_subjects o
       where o.tenant_id = g.tenant_id and o.session_id = g.session_id and o.grant_id = g.id
         and not ${isRevoked('o.fingerprint', 'o.credential_configuration_id')})`;
  const SERVES_OTHERS = namedStatement(
    'session_serves_others',
    `select 1 as one from issued_subjects o left join grants g on g.tenant_id = o.tenant_id and g.id = o.grant_id
     where o.tenant_id = $1 and o.session_id = $3 and o.fingerprint <> $2
       and not exists (select 1 from revoked_subjects r where r.tenant_id = o.tenant_id and r.fingerprint = o.fingerprint
         and r.credential_configuration_id in ('', o.credential_configuration_id)
         and (g.id is null or ${REVOKED_SINCE_GRANT})) limit 1`,
  );
  const REVOKE_GRANTS = namedStatement(
    'revoke_grants_of_subjects',
    `update grants set revoked_at = $3 where tenant_id = $1 and revoked_at is null and id in (
       select g.id from issued_subjects i join grants g on g.tenant_id = i.tenant_id and g.id = i.grant_id
       where i.tenant_id = $1 and i.fingerprint ${among('$2')} and ${isCovered('i.fingerprint')})`,
  );
  const REVOKE_GRANT = namedStatement(
    'revoke_grant_of_subject',
    `update grants as g set revoked_at = coalesce(g.revoked_at, $4)
     where g.tenant_id = $1 and g.id = $3 and (g.revoked_at is not null or ${isCovered('$2')})`,
  );
  const COUNT = namedStatement(
    'count_batches_of_subjects',
    `select count(*) as batches from (select 1 as one from issued_subjects
       where tenant_id = $1 and fingerprint ${among('$2')} limit $3) s`,
  );
  const order = (name: string, condition: string): Statement =>
    namedStatement(
      name,
      `insert into subject_revocations (tenant_id, fingerprint, session_id, credential_configuration_id, due_at)
       select distinct tenant_id, fingerprint, session_id, credential_configuration_id, cast($3 as bigint)
       from issued_subjects where tenant_id = $1 and fingerprint ${among('$2')} ${condition}
       order by 1, 2, 3, 4
       on conflict (tenant_id, fingerprint, session_id, credential_configuration_id)
         do update set due_at = ${later}(excluded.due_at, subject_revocations.due_at + 1)`,
    );
  const ORDER = order('order_subject_revocations', 'and true');
  const ORDER_SOME = order('order_some_subject_revocations', `and credential_configuration_id ${among('$4')}`);
  const ORDERS = namedStatement(
    'subject_revocations_of',
    `select * from subject_revocations where tenant_id = $1 and fingerprint ${among('$2')}
     order by due_at limit $3`,
  );
  return {
    async subjectKey(tenantId, fresh) {
      const readKey = async () => {
        const [row] = await sql.all(FIND_KEY, tenantId);
        return row && SUBJECT_KEYS.read(cipher, row).secret;
      };
      const storedKey = await readKey();
      if (storedKey !== undefined) return storedKey;
      const fields = SUBJECT_KEYS.write(cipher, tenantId, { id: FINGERPRINTS, secret: fresh });
      await sql.change(NEW_KEY, tenantId, ...fields);
      const createdKey = await readKey();
      if (createdKey === undefined) throw new Error('the tenant was removed');
      return createdKey;
    },
    countBatches: async (tenantId, fingerprints, limit) => Number((await sql.all(COUNT, tenantId, fingerprints, limit))[0]?.['batches']),
    async orderRevocations(tenantId, fingerprints, configurationIds, now) {
      const parameters = [tenantId, fingerprints, now.getTime()] as const;
      if (configurationIds === undefined) await sql.change(ORDER, ...parameters);
      else await sql.change(ORDER_SOME, ...parameters, configurationIds);
    },
    async noteRevoked(tenantId, fingerprints, configurationIds, now) {
      await sql.change(FORGET_REVOKED, tenantId, now.getTime() - REVOKED_KEPT_MS);
      // One transaction per person: two row locks in one transaction could deadlock.
      for (const fingerprint of fingerprints) await sql.all(noteRevoked, tenantId, fingerprint, configurationIds ?? [''], now.getTime());
    },
    async revokeGrants(tenantId, fingerprints, now) {
      await sql.change(REVOKE_GRANTS, tenantId, fingerprints, now.getTime());
    },
    async revokeGrant(tenantId, fingerprint, grantId, now) {
      return (await sql.change(REVOKE_GRANT, tenantId, fingerprint, grantId, now.getTime())) > 0;
    },
    revocationOrdersOf: async (tenantId, fingerprints, limit) => (await sql.all(ORDERS, tenantId, fingerprints, limit)).map(readOrder),
    dueRevocationOrders: async (now, limit) => (await sql.all(DUE, now.getTime(), limit)).map(readOrder),
    batchesOf: async (subject) => (await sql.all(BATCHES, ...keyOf(subject))).map((row) => String(row['batch_id'])),
    async servesOthers({ tenantId, fingerprint, sessionId }) {
      return (await sql.all(SERVES_OTHERS, tenantId, fingerprint, sessionId)).length > 0;
    },
    async fulfilOrder(order) {
      await sql.change(FULFILLED, ...keyOf(order), order.dueAt.getTime());
    },
    async postponeOrder(subject, dueAt) {
      await sql.change(POSTPONE, ...keyOf(subject), dueAt.getTime());
    },
  };
}

function keyOf({ tenantId, fingerprint, sessionId, credentialConfigurationId }: IssuedToSubject) {
  return [tenantId, fingerprint, sessionId, credentialConfigurationId] as const;
}

function readOrder(row: Row): RevocationOrder {
  return {
    tenantId: row['tenant_id'] as TenantId,
    fingerprint: String(row['fingerprint']),
    sessionId: row['session_id'] as SessionId,
    credentialConfigurationId: String(row['credential_configuration_id']),
    dueAt: new Date(Number(row['due_at'])),
  };
}
