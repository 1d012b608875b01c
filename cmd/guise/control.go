// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"guise/internal/holder"
	"guise/internal/plan"
)

// Keys of what a stack's holder tells commands about it.
const (
	toldEnvironment = "env." // and the name of a variable of the stack's programs
	toldFile        = "file" // the config that it was made from
)

// listen makes the control socket of the stack, which may have a name. A stack without
// a control socket works as well, but no command reaches it.
func (s *settings) listen(name string) (*holder.Socket, error) {
	socket, err := holder.Reserve(name)
	if err != nil {
		return nil, err
	}
	if err := s.answerAt(socket); err != nil {
		socket.Remove()
		return nil, err
	}
	return socket, nil
}

// answerAt has the stack's holder answer at that socket.
func (s *settings) answerAt(socket *holder.Socket) (err error) {
	s.Control, err = plan.NewControl(socket.Path, socket.Name)
	return err
}
