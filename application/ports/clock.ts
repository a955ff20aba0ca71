/** The present time. */
export abstract class Clock {
  abstract now(): Date;
}
