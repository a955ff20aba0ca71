import { defineEntity, p } from '@mikro-orm/core';
import { time } from './row-parts.ts';

/** Sections of the database's own history; a new one begins whenever earlier data may be incomplete. */
export const TermRow = defineEntity({
  name: 'TermRow',
  tableName: 'service_terms',
  properties: {
    number: p.bigint('number').primary().autoincrement(false),
    /** Number of the previous term, which only one term follows; 0 for the first. */
    follows: p.bigint('number'),
    /** Random: two histories never share one. */
    id: p.string(),
    /** Id of the first term: it identifies the service, also in a copy that was restored elsewhere. */
    lineage: p.string(),
    /** Location of the database when the term began. */
    place: p.string(),
    /** Raised by writes; the counter of an ended term does not change. */
    counter: p.bigint('number'),
    beganAt: time(),
    how: p.string(),
    /** Time when missing data was detected. */
    lostAt: time().nullable(),
    /** Lost trust lists up to this number may have been published. */
    listFloor: p.integer(),
    /** Time since when a process keeps a sighting of the term outside of the database. */
    witnessedAt: time().nullable(),
    /** The highest counter that a process recorded outside of the database. */
    witnessedCounter: p.bigint('number').nullable(),
    /** Number of times that a process confirmed that record while nothing changed. */
    witnessedIdleChecks: p.bigint('number').nullable(),
    /** Host and file of that record. */
    witnessedBy: p.text().nullable(),
  },
  uniques: [{ name: 'service_terms_follows', properties: ['follows'] }],
});
