import { TrustListRefusal } from './trust-list-refusal.ts';

/** TS 119 602 section 6.1.3 wants whole seconds; published lists carry fractions too. */
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

/** @throws TrustListRefusal `malformed` */
export function readDateTime(value: unknown, name: string): Date {
  const time = typeof value === 'string' && DATE_TIME.test(value) ? new Date(value) : undefined;
  if (time === undefined || Number.isNaN(time.getTime())) throw new TrustListRefusal('malformed', name);
  return time;
}
