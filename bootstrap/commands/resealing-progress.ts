/**
 * What `npm run reseal` tells of a pass. More than were counted may turn up: a service writes beside it, and what stands within a
 * row is not counted.
 * @param pending how many were counted when the pass began.
 */
export function progressOf(done: number, pending: number): string {
  return done > pending ? `${done} sealed anew` : `${done} of ${pending} sealed anew`;
}
