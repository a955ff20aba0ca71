import type { Finding } from '../shared/finding.ts';
import type { StatusListConfig, Tenant } from './tenant.ts';

/** Limit for the caching of a status list, in seconds. */
const DAY = 86_400;
/** Number of entries that provide herd privacy: a request does not reveal the credential in question. */
const HERD_SIZE = 10_000;

/** Warnings about the shape of a tenant's future status lists. */
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
  if (capacity === null || capacity === undefined || capacity >= HERD_SIZE) return [];
  return [
    {
      rule: 'Token Status List section 12.1',
      member: 'capacity',
      concerns: 'holders',
      message: 'a list has so few entries that its operator can guess whose credential was presented',
      change: `choose ${HERD_SIZE} entries or more`,
    },
  ];
}
