/** Thrown by a control or a case for which the target, or what was given, has nothing. */
export class Skip extends Error {}
