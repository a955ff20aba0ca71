import type { Finding } from '../shared/finding.ts';
import type { StatusListConfig, Tenant } from './tenant.ts';

/** Seconds for which a reader may go on with a list that it has. */
const DAY = 86_400;
/** Entries among which nobody can tell whose status was asked for. */
const HERD = 10_000;

/** What readers or holders suffer from the shape of the status lists that a tenant gets from now on. */
export function findStatusListProblems({ statusListConfig }: Pick<Tenant, 'statusListConfig'>): Finding[] {
  return statusListConfig === null ? [] : [...findTtlProblems(statusListConfig), ...findCapacityProblems(statusListConfig)];
}

function findTtlProblems({ ttl }: StatusListConfig): Finding[] {
  if (ttl === null || ttl === undefined || ttl <= DAY) return [];
  return [
    {
      rule: 'Token Status List section 13.7',
      member: 'ttl',
      concerns: 'verifiers',
      message: 'verifiers may accept a credential for more than a day after it was revoked',
      change: `choose ${DAY} seconds or less`,
    },
  ];
}

function findCapacityProblems({ capacity }: StatusListConfig): Finding[] {
  if (capacity === null || capacity === undefined || capacity >= HERD) return [];
  return [
    {
      rule: 'Token Status List section 12.1',
      member: 'capacity',
      concerns: 'holders',
      message: 'a list has so few entries that whoever sees it fetched can guess whose credential was presented',
      change: `choose ${HERD} entries or more`,
    },
  ];
}
