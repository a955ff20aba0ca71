/** Thrown by a control or a case that does not apply to the target or the given options. */
export class Skip extends Error {}
