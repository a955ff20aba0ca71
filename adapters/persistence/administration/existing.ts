import { Failure } from '../../../domain/shared/failure.ts';

/** @throws Failure `not_found` for what is not there. */
export function existing<T extends object>(found: T | null | undefined, what: string): T {
  if (found === null || found === undefined) throw missing(what);
  return found;
}

export function missing(what: string): Failure {
  return new Failure('not_found', `there is no such ${what}`);
}
