import { defineEntity, p } from '@mikro-orm/core';
import { time } from './row-parts.ts';

/** Parts of the database's own history; a new one begins wherever what came before may not be all that there was. */
export const TermRow = defineEntity({
  name: 'TermRow',
  tableName: 'service_terms',
  properties: {
    number: p.bigint('number').primary().autoincrement(false),
    /** The number of the term before, which only one follows; 0 of the first. */
    follows: p.bigint('number'),
    /** Random: two histories never share one. */
    id: p.string(),
    /** The id of the first term: that of the service, also in what was restored elsewhere. */
    lineage: p.string(),
    /** Where the database was when the term began. */
    place: p.string(),
    /** Goes up with what is written; that of a former term stays as it ended. */
    counter: p.bigint('number'),
    beganAt: time(),
    how: p.string(),
    /** Since when it is known that something is missing. */
    lostAt: time().nullable(),
    /** Trust lists up to this number may have been published by what was lost. */
    listFloor: p.integer(),
    /** Since when a process keeps a sighting of the term outside of the database. */
    witnessedAt: time().nullable(),
    /** The highest counter that a process recorded outside of the database. */
    witnessedCounter: p.bigint('number').nullable(),
    /** How often a process confirmed that record while nothing changed. */
    witnessedIdleChecks: p.bigint('number').nullable(),
    /** Host and file of that record. */
    witnessedBy: p.text().nullable(),
  },
  uniques: [{ name: 'service_terms_follows', properties: ['follows'] }],
});
