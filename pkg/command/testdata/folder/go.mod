module example.com/folder

go 1.26.0

require github.com/terapush/terapush v0.0.0
