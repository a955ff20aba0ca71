import { Clock } from '../../application/ports/clock.ts';

/** The clock of the machine. */
export class SystemClock extends Clock {
  override now(): Date {
    return new Date();
  }
}
